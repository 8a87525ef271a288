"""What a run of the driver role learned: for the record on the host and for the report."""

from __future__ import annotations

import hashlib

from gpufleet.driver.files import preferences
from gpufleet.driver.operations.modules import PREREQUISITES
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.record import DriverEntry
from gpufleet.host.file_write import FileWrite
from gpufleet.host.findings import machine as findings
from gpufleet.node.operations.node import Node
from gpufleet.node.operations.provenance import Learned
from gpufleet.packages.added import carried
from gpufleet.packages.operations.transaction import Found


def conclude(node: Node, plan: DriverPlan, found: Found | None = None) -> Learned:
    """The provenance of the driver; also completes the host's line in the report."""
    version = found.transaction.version if found else plan.target
    node.saw("driver", version)
    if node.waits_for_reboot:
        node.report.needs.append(f"reboot: {node.reboot}")
        node.report.findings.append(findings.REBOOT_NEEDED(why=node.reboot))
    old = node.facts.provenance.entry(DriverEntry)
    repository = plan.repository.repository
    entry = DriverEntry(
        version=version,
        branch=plan.choice.branch,
        modules=plan.choice.modules,
        source=plan.choice.source,
        build=plan.choice.build,
        packages=_versions(node, plan, found),
        load=list(plan.modules),
        prerequisites=_missing(node) if old.prerequisites is None else old.prerequisites,
        repository=repository.url if repository else None,
        keyring=repository.keyring if repository else None,
        source_file=repository.file if repository else None,
        held=node.settings.driver.hold,
        fabric_manager=bool(node.facts.nvswitches),
    )
    return Learned(carried(entry, old), _files(node, plan, version))


def _missing(node: Node) -> list[str]:
    """The kernel's own modules that were not loaded before the driver needed them."""
    return [name for name in PREREQUISITES if name not in node.facts.modules]


def _versions(node: Node, plan: DriverPlan, found: Found | None) -> dict[str, str]:
    if found:
        return dict(found.transaction.install)
    there = node.facts.packages
    return {name: there[name].version for name in plan.packages if name in there}


def _files(node: Node, plan: DriverPlan, version: str | None) -> dict[str, str]:
    """Files that gpufleet wrote, now or in an earlier run, with their sha256."""
    files: list[FileWrite] = list(plan.wanted_files)
    if node.facts.package_manager == "apt" and node.settings.driver.hold and version:
        files.append(preferences(plan.packages, version))
    if plan.components:
        files.append(plan.components)
    files += [file for file in (plan.repository.source, plan.repository.login) if file]
    recorded = node.facts.provenance.files
    return {
        file.path: hashlib.sha256(file.data).hexdigest()
        for file in files
        # under our name it is ours, even if a run that was killed did not record it
        if file.path in recorded or "gpufleet" in file.path or not file.is_on(node.facts)
    }
