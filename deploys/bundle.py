"""Collect the packages of each host's plan for `gpufleet bundle create`. Change nothing."""

from gpufleet.bundle.operations.collect import collect_from_host
from gpufleet.host.boundary import one_host

with one_host():  # a problem of one host stops only this host
    collect_from_host()
