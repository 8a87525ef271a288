"""Operations on the exporter's services: start, wait for metrics, stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra import host

from gpufleet.exporter import findings
from gpufleet.exporter.plan import ExporterPlan
from gpufleet.facts.files import HOME
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import explain_finding, script_command

IMAGES = f"{HOME}/exporter.images"  # images that gpufleet pulled
METRICS_TIMEOUT = 60  # seconds; dcgm-exporter collects every 30


@host_operation
def fetch_image(plan: ExporterPlan) -> Commands:
    """
    Pull the exporter's image if docker lacks it.

    + plan: how the exporter runs, and from which image
    """
    if plan.mode != "docker" or not plan.restart:
        host.noop("no image is needed")
        return
    message = explain_finding(host.name, findings.IMAGE_NOT_THERE(image=plan.choice.image))
    yield script_command("exporter/exporter_image", message, IMAGES, plan.choice.image)


@host_operation
def start_exporter(
    plan: ExporterPlan, gpus: int, needed: bool, ready: Callable[[], bool]
) -> Commands:
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
        unit=plan.units[-1], seconds=METRICS_TIMEOUT, address=plan.reachable, gpus=gpus
    )
    message = explain_finding(host.name, finding)
    url = f"http://{plan.reachable}/metrics"
    yield script_command(
        "exporter/exporter_start", message, url, str(gpus), str(METRICS_TIMEOUT), *plan.units
    )


@host_operation
def stop_exporter(units: Sequence[str], images: bool = False) -> Commands:
    """
    Stop and disable an exporter.

    + units: its services
    + images: remove its images too; no units and no images means no change
    """
    if not (units or images):
        host.noop("no exporter to stop")
        return
    yield script_command("exporter/exporter_stop", IMAGES if images else "", *units)
