"""The roles as a package: gpufleet.roles.driver.install is roles/driver/install.py of a checkout.

An installed package has no `roles` of its own on sys.path, where it would meet that of others.
"""

from gpufleet.core.paths import shipped

__path__ = [str(shipped("roles"))]
