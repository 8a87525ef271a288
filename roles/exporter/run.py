"""The exporter of GPU metrics on one host: what is carried out, in order."""

from __future__ import annotations

from gpufleet.exporter import operations as exporter
from gpufleet.exporter.record import ExporterEntry
from gpufleet.host import files
from gpufleet.host.operation import Later, role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import Node
from gpufleet.packages.operations import transaction as packages

from .conclude import conclude
from .job import exporter_jobs


@role("Exporter")
def run(node: Node) -> None:
    """Bring the exporter of `node` to its plan; nothing where the settings want none."""
    plan = node.plan.exporter
    if plan is None:
        return
    jobs = exporter_jobs(node, plan)
    moves = node.plan.driver is not None and not node.plan.driver.converged
    settled = plan.converged and not moves
    if settled and provenance.is_current(node, conclude(node, plan)):
        return  # steps that have nothing to do cost more than asking the host
    timeout = node.settings.driver.lock_timeout

    exporter.fetch_image("See that the image is there", plan)
    files.write("Say where it listens and what it collects", node.facts, plan.files)
    found: list[Later[packages.Found]] = []
    for job in jobs:  # the exporter's packages want DCGM's to be there
        asked = packages.look_up(f"Find {job.family.title} in the repository and fetch it", job)
        packages.install(f"Install {job.family.title} at one version", job, asked)
        found.append(asked)
    if jobs:
        first, plugin = jobs[0], plan.prerequisites
        packages.hold("Hold the packages", first.manager, plan.hold, timeout, plugin, first.record)
    exporter.stop("Stop the one that ran in another way", plan.retire)
    exporter.start(
        "Start it and see metrics of every GPU",
        plan,
        len(node.facts.gpus),
        plan.restart or plan.changes_packages or bool(plan.files) or moves,
        lambda: not node.waits_for_reboot,
    )
    provenance.record(
        "Record what was installed",
        node,
        ExporterEntry,
        lambda: conclude(node, plan, [each.value for each in found]),
    )
