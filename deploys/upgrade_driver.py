"""One step of an upgrade on its hosts; `gpufleet upgrade` runs it, wave by wave."""

from gpufleet.host.boundary import one_host
from gpufleet.roles.node import install_roles
from gpufleet.upgrade.operations.steps import take_part

with one_host():  # a problem of one host stops only this host
    take_part(install_roles)
