"""Findings about a host before its driver is changed. Pure."""

from __future__ import annotations

import re

from gpufleet.core.findings import Finding
from gpufleet.driver.files import RIVALS
from gpufleet.driver.findings import host as findings
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.files import DRIVER_BEGUN_PATH
from gpufleet.facts.model import NodeFacts
from gpufleet.packages import findings as package_findings

# driver, DKMS build, package cache, initramfs
NEEDED_MB = {"/usr": 2000, "/var": 1500, "/boot": 100}
TRIGGERED = ("initramfs-tools", "libc-bin", "man-db", "dbus")  # dpkg triggers of driver packages
INTERRUPTED = "an interrupted run of dpkg"  # as in the facts
DKMS_PLACE = re.compile(r"/lib/modules/[^/]+/(updates|extra)/")  # dkms(8), dest_module_location


def inspect_driver(settings: DriverSettings, facts: NodeFacts, plan: DriverPlan) -> list[Finding]:
    """Findings about the installed driver and about obstacles to the planned one."""
    found: list[Finding] = []
    if facts.operator_driver:
        found.append(findings.OPERATOR_DRIVER())
    evidence, tool = facts.foreign_driver, "the image, an installer, a cloud's agent"
    if facts.runfile_install:
        evidence, tool = "NVIDIA's .run file installed it", "`nvidia-uninstall --silent`"
    if evidence and (facts.runfile_install or not facts.operator_driver):
        unknown = "of an unknown version" if "nvidia" in facts.modules else "(not loaded)"
        version = facts.loaded_driver or facts.library or unknown
        found.append(findings.FOREIGN_DRIVER(version=version, evidence=evidence, tool=tool))
    found += _owners(facts, plan)
    builds = plan.choice.build == "dkms" and (plan.changes_packages or plan.load)
    enrolled = settings.mok_enrolled or _loaded_was_built_here(facts)
    if facts.kernel.secure_boot and builds and not enrolled:
        archive = facts.distribution.archive if facts.distribution else None
        built = archive and any("precompiled" in branch.build for branch in archive.branches)
        found.append(findings.SECURE_BOOT(signed=findings.SIGNED_MODULES if built else ""))
    for rival in RIVALS:
        if rival in facts.modules and any(gpu.driver == rival for gpu in facts.gpus):
            found.append(findings.NOUVEAU_LOADED(module=rival))
    if facts.unattended_upgrades and any(not file.is_on(facts) for file in plan.files):
        found.append(package_findings.UNATTENDED_UPGRADES())
    if plan.changes_packages:
        found += _obstacles(facts, plan)
    return found


def _owners(facts: NodeFacts, plan: DriverPlan) -> list[Finding]:
    """Findings about a driver whose packages the plan does not replace."""
    found: list[Finding] = []
    known = plan.choice.packages
    family, others = (re.compile("|".join(p) or "(?!)") for p in (known.family, known.others))
    owners = {name for file in facts.driver_files for name in file.owners or ()}
    names = {name for name in owners if known.family and not family.fullmatch(name)}
    names |= {name for name in facts.packages if others.fullmatch(name)}
    if names:
        found.append(findings.OTHER_SOURCE(packages=", ".join(sorted(names))))
    unknown = [file.path for file in facts.driver_files if file.owners is None]
    if unknown and not (facts.runfile_install or facts.operator_driver):
        ask = "dpkg -S" if facts.package_manager == "apt" else "rpm -qf"
        command = f"{ask} {unknown[0]}"
        found.append(findings.OWNER_UNKNOWN(files=", ".join(unknown), command=command))
    return found


def _loaded_was_built_here(facts: NodeFacts) -> bool:
    """True if DKMS built and signed the loaded module: the kernel will accept its next one too.

    A module signed by the distribution says nothing about DKMS's key.
    """
    module, loaded = facts.module_on_disk, facts.loaded_driver
    if loaded is None or module is None or module.version != loaded or not module.signer:
        return False
    built = any(
        (found.version, found.kernel, found.state) == (loaded, facts.kernel.release, "installed")
        for found in facts.dkms
    )
    return built and DKMS_PLACE.search(module.path) is not None


def _obstacles(facts: NodeFacts, plan: DriverPlan) -> list[Finding]:
    found: list[Finding] = []
    if facts.broken:
        if _is_ours(facts, plan):
            # /run, which has the name of the last run, is empty after a boot
            booted = DRIVER_BEGUN_PATH in facts.texts and not facts.run_lock
            since = "; the host rebooted during it" if booted else ""
            found.append(package_findings.PACKAGES_UNFINISHED(problem=f"{facts.broken}{since}"))
        else:
            remedy = "yum-complete-transaction or dnf history, then yum check."
            if facts.package_manager == "apt":
                remedy = "dpkg --configure -a, then apt-get -f install."
            found.append(package_findings.BROKEN_PACKAGES(problem=facts.broken, remedy=remedy))
    for path, needed in NEEDED_MB.items():
        free = facts.free_bytes.get(path)
        if free is not None and free < needed * 1_000_000:
            found.append(
                package_findings.DISK_SPACE(path=path, free=free // 1_000_000, needed=needed)
            )
    return found


def _is_ours(facts: NodeFacts, plan: DriverPlan) -> bool:
    """True if the half-installed packages belong to the driver, or are triggered by it."""
    family = plan.packages + plan.transaction.installed
    names = {problem.split(" is ")[0] for problem in facts.broken.split(", ")}
    beside = {*plan.choice.packages.build, *plan.choice.packages.headers, *TRIGGERED}
    return any(name in family for name in names) or names - {INTERRUPTED} <= beside
