"""Whether a driver change would disrupt running GPU work, or be a downgrade unasked. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.core.findings import Finding
from gpufleet.core.names import counted
from gpufleet.core.versions import version_tuple
from gpufleet.driver.action import Action, is_loaded
from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.findings import host as findings
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.gpu_work import gpu_work
from gpufleet.facts.model import NodeFacts


def disruption(
    settings: DriverSettings,
    facts: NodeFacts,
    spared: Collection[int],
    target: str | None,
    choice: DriverChoice,
    action: Action,
) -> list[Finding]:
    """Blockers if the plan would disrupt running GPU work."""
    before, after = facts.loaded_driver, target or f"branch {choice.branch}"
    if settings.allow_disruption or before is None:
        return []
    if is_loaded(choice, target, facts) and action != "replace":
        return []  # packages can be completed while the module stays loaded
    if before == after:
        before += f" ({facts.loaded_flavour or facts.installed_flavour})"
        after += f" ({choice.modules})"
    if facts.gpu_pods:
        pods = counted(facts.gpu_pods, "pod")
        return [findings.KUBERNETES_GPU_PODS(before=before, after=after, pods=pods)]
    work = gpu_work(facts, spared)
    if work:
        names = ", ".join(str(process) for process in work[:5])
        return [findings.GPU_BUSY(before=before, after=after, work=names)]
    return []


def lower_driver(
    settings: DriverSettings,
    facts: NodeFacts,
    before: str | None,
    target: str | None,
    choice: DriverChoice,
) -> list[Finding]:
    """A blocker if the plan would downgrade the driver and no exact version is set."""
    if settings.version:
        return []
    there = {"installed": before, "loaded": facts.loaded_driver}
    newest = choice.newest_known
    for how, version in there.items():
        if version is None or not _is_below(target or choice.branch, version):
            continue
        wanted = target or f"the newest version of branch {choice.branch}"
        known = newest if newest and newest.split(".")[0] == choice.branch else None
        example = f', such as driver_version = "{known}"' if known else ""
        branch = version.split(".")[0]
        return [
            findings.LOWER_DRIVER(
                there=version, how=how, wanted=wanted, branch=branch, example=example
            )
        ]
    return []


def _is_below(wanted: str, there: str) -> bool:
    """Whether a version is lower than another; a branch counts as its highest version."""
    low, high = version_tuple(wanted), version_tuple(there)
    return low < high[: len(low)]
