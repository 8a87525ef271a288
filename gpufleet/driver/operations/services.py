"""Services of the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra import host

from gpufleet.driver.findings import host as findings
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain, script


@operation
def run(units: Sequence[str], ready: Callable[[], bool]) -> Commands:
    """
    Enable and start services, and verify that they keep running.

    + units: services that do not run; empty means no change
    + ready: whether the driver is loaded, as the services need
    """
    if not units or not ready():
        host.noop(
            "the services run" if not units else "they start with the driver after the reboot"
        )
        return
    yield script(
        "driver/services", explain(host.name, findings.SERVICE_FAILED(service="UNIT")), *units
    )
