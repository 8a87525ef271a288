"""The exporter's services: started, seen to answer, stopped for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra import host

from gpufleet.exporter import findings
from gpufleet.exporter.model import ExporterPlan
from gpufleet.host.files import HOME
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain, script

IMAGES = f"{HOME}/exporter.images"  # those that gpufleet had docker pull
PATIENCE = 60  # seconds; dcgm-exporter collects every 30


@operation
def fetch_image(plan: ExporterPlan) -> Commands:
    """
    See that docker has the exporter's image.

    + plan: how the exporter runs, and from which image
    """
    if plan.mode != "docker" or not plan.restart:
        host.noop("no image is needed")
        return
    message = explain(host.name, findings.IMAGE_NOT_THERE(image=plan.choice.image))
    yield script("exporter/exporter_image", message, IMAGES, plan.choice.image)


@operation
def start(plan: ExporterPlan, gpus: int, needed: bool, ready: Callable[[], bool]) -> Commands:
    """
    Start the exporter anew, and wait until it has metrics of every GPU.

    + plan: how the exporter runs
    + gpus: how many GPUs the host has
    + needed: what runs is not what is wanted, or has lost its driver
    + ready: whether the driver is loaded, which the exporter needs
    """
    if not needed or not ready():
        host.noop("the exporter runs" if not needed else "it starts after the reboot")
        return
    finding = findings.EXPORTER_DOWN(
        unit=plan.units[-1], seconds=PATIENCE, address=plan.reachable, gpus=gpus
    )
    message = explain(host.name, finding)
    url = f"http://{plan.reachable}/metrics"
    yield script("exporter/exporter_start", message, url, str(gpus), str(PATIENCE), *plan.units)


@operation
def stop(units: Sequence[str], images: bool = False) -> Commands:
    """
    Stop an exporter, and keep it from starting again.

    + units: its services
    + images: what docker pulled for it goes too; neither is no change
    """
    if not (units or images):
        host.noop("there is none to stop")
        return
    yield script("exporter/exporter_stop", IMAGES if images else "", *units)
