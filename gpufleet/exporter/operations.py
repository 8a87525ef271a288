"""Operations on the exporter's services: start, wait for metrics, stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra import host

from gpufleet.exporter import findings
from gpufleet.exporter.plan import ExporterPlan
from gpufleet.facts.files import HOME
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain, script

IMAGES = f"{HOME}/exporter.images"  # images that gpufleet pulled
PATIENCE = 60  # seconds; dcgm-exporter collects every 30


@operation
def fetch_image(plan: ExporterPlan) -> Commands:
    """
    Pull the exporter's image if docker lacks it.

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
    Restart the exporter, and wait until it has metrics of every GPU.

    + plan: how the exporter runs
    + gpus: number of GPUs of the host
    + needed: the exporter does not run as planned, or its driver was reloaded
    + ready: True if the driver is loaded, which the exporter needs
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
    Stop and disable an exporter.

    + units: its services
    + images: remove its images too; no units and no images means no change
    """
    if not (units or images):
        host.noop("no exporter to stop")
        return
    yield script("exporter/exporter_stop", IMAGES if images else "", *units)
