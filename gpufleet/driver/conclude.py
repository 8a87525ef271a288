"""Results of the driver role for the record on the host and for the report."""

from __future__ import annotations

from gpufleet.driver.files import pinned, pins
from gpufleet.driver.findings import host as findings
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.record import DriverEntry
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.added import carried
from gpufleet.packages.job import Found, versions_of
from gpufleet.packages.transaction import still_held
from gpufleet.role.result import RoleResult, digests

# what the steps put right, once the driver is loaded
SOLVED = (findings.VERSION_MISMATCH, findings.NO_HEADERS, findings.NOUVEAU, findings.OTHER_PACKAGES)
PREREQUISITES = ("i2c_core", "ipmi_msghandler")  # modules of the kernel that load.sh loads


def conclude(
    settings: DriverSettings,
    facts: NodeFacts,
    plan: DriverPlan,
    found: Found | None = None,
    reboot: str = "",
) -> RoleResult:
    """What the host has now. `reboot`: why only a reboot, which is not allowed, can load it."""
    version = found.transaction.version if found else plan.target
    old = facts.provenance.entry(DriverEntry)
    repository = plan.repository.repository
    entry = DriverEntry(
        version=version,
        branch=plan.choice.branch,
        modules=plan.choice.modules,
        source=plan.choice.source,
        build=plan.choice.build,
        packages=versions_of(plan.packages, facts, found, old),
        load=list(plan.modules),
        prerequisites=_missing(facts) if old.prerequisites is None else old.prerequisites,
        repository=repository.url if repository else None,
        keyring=repository.keyring if repository else None,
        source_file=repository.file if repository else None,
        held=settings.hold or still_held(old, facts, moved=found is not None),
        fabric_manager=bool(facts.nvswitches),
    )
    return RoleResult(
        carried(entry, old),
        _files(settings, facts, plan, version),
        version,
        needs=(f"reboot: {reboot}",) if reboot else (),
        findings=(findings.REBOOT_NEEDED(why=reboot),) if reboot else (),
        solved=() if reboot else tuple(kind.code for kind in SOLVED),
    )


def _missing(facts: NodeFacts) -> list[str]:
    """Modules of the kernel that were not loaded before the driver needed them."""
    return [name for name in PREREQUISITES if name not in facts.modules]


def _files(
    settings: DriverSettings, facts: NodeFacts, plan: DriverPlan, version: str | None
) -> dict[str, str]:
    """Files that gpufleet wrote, in this run or an earlier one: path -> sha256."""
    files: list[FileWrite] = list(plan.wanted_files)
    if pinned(settings, facts) and version:
        files.append(pins(plan.packages, version))
    if plan.components:
        files.append(plan.components)
    files += [file for file in (plan.repository.source, plan.repository.login) if file]
    recorded = facts.provenance.files
    return digests(
        file
        for file in files
        # a file with our name is ours, even if a killed run did not record it
        if file.path in recorded or "gpufleet" in file.path or not file.is_on(facts)
    )
