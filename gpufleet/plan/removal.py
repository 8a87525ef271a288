"""What gpufleet installed on a host and takes away again: by the host's record, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpufleet.facts.model import NodeFacts
from gpufleet.findings import Finding
from gpufleet.findings import host as findings
from gpufleet.plan.driver import DAEMONS, MODPROBE_FILE
from gpufleet.settings import DriverSettings

PERSISTENCE_OVERRIDE = "/etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
ROLES = ("toolkit", "driver")  # in the order of their removal


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """What is taken away, in this order."""

    packages: tuple[str, ...]  # of driver and toolkit
    added: tuple[str, ...]  # that came with them
    files: tuple[str, ...]
    unload: bool
    initramfs: bool  # the blacklist goes: rebuild
    findings: tuple[Finding, ...] = ()

    @property
    def blocked(self) -> bool:
        return any(finding.blocks for finding in self.findings)


def plan_removal(settings: DriverSettings, facts: NodeFacts) -> RemovalPlan:
    """The removal of what the host's record names; nothing where there is no record."""
    record = facts.provenance
    if not record:
        return RemovalPlan((), (), (), unload=False, initramfs=False,
                           findings=(findings.NO_RECORD(),))  # fmt: skip
    packages = _names(record, "packages")
    files, changed = _files(record, facts)
    work = [process for process in facts.gpu_processes if process.command not in DAEMONS]
    found = [findings.FILE_CHANGED(path=path) for path in changed]
    if (work or facts.gpu_pods) and not settings.allow_disruption:
        names = ", ".join(f"{process.command} ({process.pid})" for process in work[:5])
        found.append(findings.GPU_BUSY_REMOVAL(work=names or f"{facts.gpu_pods} pods"))
    return RemovalPlan(
        packages=packages,
        added=tuple(name for name in _names(record, "added") if name not in packages),
        files=files,
        unload=bool(record.get("driver")) and facts.loaded_driver is not None,
        initramfs=MODPROBE_FILE in files,
        findings=tuple(found),
    )


def _names(record: dict[str, Any], key: str) -> tuple[str, ...]:
    """Package names under `key` of both roles, in the order of their removal."""
    names = [name for role in ROLES for name in (record.get(role) or {}).get(key, ())]
    return tuple(dict.fromkeys(names))


def _files(record: dict[str, Any], facts: NodeFacts) -> tuple[tuple[str, ...], list[str]]:
    """Files of ours that nobody touched since, and those that somebody did."""
    ours, changed = [], []
    for path, digest in record.get("files", {}).items():
        there = facts.files.get(path)
        if there is not None and there.sha256 and there.sha256 != digest:
            changed.append(path)
        else:
            ours.append(path)
    keyrings = [(record.get(role) or {}).get("keyring") for role in ROLES]
    sources = {(record.get(role) or {}).get("source_file") for role in ROLES}
    ours += [keyring for keyring in keyrings if keyring and sources & set(ours)]
    return (*ours, PERSISTENCE_OVERRIDE), changed
