"""The roles as a package: gpufleet.roles.driver.install is roles/driver/install.py of a checkout.

An installed package adds no top-level `roles` to sys.path, because that could shadow another one.
"""

from gpufleet.core.paths import shipped_path

__path__ = [str(shipped_path("roles"))]
