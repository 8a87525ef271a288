"""Builds the view of a host that a run needs, from its facts and plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.findings import Finding, Kind
from gpufleet.core.names import count_noun, list_names
from gpufleet.core.versions import branch_of
from gpufleet.driver.action import lost_mig_devices
from gpufleet.driver.catalog import devices_of
from gpufleet.driver.findings.choice import NOT_IN_CATALOG
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.files import HOME
from gpufleet.facts.gpu_work import gpu_work
from gpufleet.facts.model import NodeFacts
from gpufleet.gpu.findings import GPU_HAS_WORK
from gpufleet.gpu.moves import gpu_move
from gpufleet.gpu.role import ROLE as GPU
from gpufleet.host.upgrade_settings import Subject
from gpufleet.host.upgrade_state import MAX_VERSION_CHARS
from gpufleet.node.catalog import Catalog
from gpufleet.node.plan import NodePlan, plan_node, plan_steps
from gpufleet.node.settings import NodeSettings
from gpufleet.packages.logins import Logins
from gpufleet.role.place import Place
from gpufleet.toolkit.findings.choice import TOOLKIT_UNKNOWN_VERSION
from gpufleet.toolkit.role import ROLE as TOOLKIT
from gpufleet.upgrade.findings import hosts as findings
from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.plan import NEVER_A_GPU
from gpufleet.upgrade.subjects import DISABLED

NO_GPU_NOW = "no GPU, though it has a driver or was a GPU node"
UNKNOWN_TARGETS: dict[Subject, Kind] = {
    "driver": NOT_IN_CATALOG,
    "toolkit": TOOLKIT_UNKNOWN_VERSION,
}
KEPT_FOLDER = f"{HOME}/upgrade"  # folder on a host for the files of a run


@dataclass(frozen=True, slots=True)
class LookedHost:
    """A host's facts: the arguments of `plan_node`, and the GPUs that nvidia-smi lists."""

    name: str
    settings: NodeSettings
    facts: NodeFacts
    catalog: Catalog
    now: int
    logins: Mapping[str, Logins]
    place: Place
    listed: int

    def planned(self, subject: Subject = "driver", version: str | None = None) -> NodePlan:
        """The plan, with another version of the subject if one is given. GPU work is no obstacle in
        it, because the run waits for that work."""
        driver: dict[str, Any] = {"allow_disruption": True}
        if subject == "driver" and version is not None:
            driver |= {"version": version, "branch": str(branch_of(version))}
        roles: dict[str, Any] = {DRIVER.name: self.settings.of(DRIVER).model_copy(update=driver)}
        if subject == "toolkit" and version is not None:
            toolkit = self.settings.of(TOOLKIT)
            roles[TOOLKIT.name] = toolkit.model_copy(update={"version": version})
        if subject == "sharing" and version is not None:
            roles[GPU.name] = self.settings.of(GPU).model_copy(update={"lines": version})
        settings = replace(self.settings, by_role={**self.settings.by_role, **roles})
        return plan_node(settings, self.facts, self.catalog, self.now, self.logins, self.place)


def view_of(seen: LookedHost, place: str, subject: Subject = "driver") -> HostView:
    """The view of a host for planning. `place`: value of the key of upgrade_wave_by; `subject`: the
    subject of the run."""
    facts, plan = seen.facts, seen.planned()
    ids = [gpu.device for gpu in facts.gpus]
    models = devices_of(seen.catalog, ids)
    view = HostView(
        name=seen.name,
        model=" + ".join(f"{ids.count(model.id)} x {model.title}" for model in models),
        distribution=facts.os.code,
        kernel=facts.kernel.release,
        work=gpu_users(facts, plan),
        place=place,
        kubelet=facts.kubelet,
        machine=facts.machine_id,
    )
    driver = seen.settings.of(DRIVER)
    if not _is_managed(seen.settings, subject):
        return replace(view, refusals=(DISABLED[subject],))
    known = _with_versions(view, seen, plan, subject)
    if not facts.gpus or known is None:
        return replace(view, refusals=(NO_GPU_NOW if _had_gpu(facts) else NEVER_A_GPU,))
    if known.target is None:
        found = _no_target(seen, plan, subject)
    else:
        aimed = seen.planned(subject, known.target)
        found = _obstacles(seen, aimed, known, subject)
        known = replace(known, warnings=_unknown_target(aimed, known, subject))
    if subject == "driver":  # also for a roll-back, whose target is not known here
        found += lost_mig_devices(driver, facts)
    return replace(known, refusals=tuple(dict.fromkeys(each.text for each in found)))


def _is_managed(settings: NodeSettings, subject: Subject) -> bool:
    """True if the inventory leaves the subject to gpufleet."""
    if subject == "sharing":
        gpu = settings.of(GPU)
        return any(key is not None for key in (gpu.mig, gpu.ecc, gpu.lines))
    toolkit, driver = settings.of(TOOLKIT), settings.of(DRIVER)
    return toolkit.enabled if subject == "toolkit" else driver.enabled


def _had_gpu(facts: NodeFacts) -> bool:
    """True if a host without a GPU has a driver from any source, or was set up as a GPU node."""
    built = any(module.name.startswith("nvidia") for module in facts.dkms)
    ours = any(facts.provenance.has(role.name) for role in (DRIVER, TOOLKIT))
    there = (
        facts.loaded_driver, facts.module_on_disk, facts.runfile_install, facts.foreign_driver,
        facts.operator_driver,
    )  # fmt: skip
    return any(there) or built or ours


def _with_versions(
    view: HostView, seen: LookedHost, plan: NodePlan, subject: Subject
) -> HostView | None:
    """The view with the versions of the subject, or None if its role does not apply to the host. A
    host to be rebooted keeps its driver, and is never converged."""
    if subject == "toolkit":
        toolkit = plan.of(TOOLKIT)
        if toolkit is None:
            return None
        aim = seen.settings.of(TOOLKIT).version or toolkit.target
        return replace(view, before=toolkit.before, loaded=toolkit.before, target=aim)
    if subject == "sharing":
        gpu = plan.of(GPU)
        move = gpu_move(gpu, seen.facts) if gpu else None
        if move is None or max(len(move.before), len(move.target)) > MAX_VERSION_CHARS:
            return view
        loaded = move.before if move.settled else None
        return replace(view, before=move.before, loaded=loaded, target=move.target)
    driver, loaded = plan.of(DRIVER), seen.facts.loaded_driver
    if driver is None:
        return None
    if subject == "reboot":
        return replace(view, before=driver.before, target=driver.before)
    wanted = seen.settings.of(DRIVER)
    newest = driver.choice.newest_known if wanted.branch else None
    if driver.stale_module and loaded == driver.target:
        loaded = None  # of the other flavour
    target = wanted.version or newest or None
    return replace(view, before=driver.before, loaded=loaded, target=target)


def _no_target(seen: LookedHost, plan: NodePlan, subject: Subject) -> list[Finding]:
    """Why the host has no target version."""
    if subject == "sharing" and plan.of(GPU) is not None:
        return [findings.LAYOUT_NOT_NOTED(most=MAX_VERSION_CHARS)]
    if subject != "driver":
        return list(plan.blockers)
    if branch := seen.settings.of(DRIVER).branch:
        unknown = findings.NO_TARGET(reason=f"the catalog has none of branch {branch}")
        return [*plan.blockers] or [unknown]
    nothing = "neither inventory nor command line requests one"
    return [findings.NO_TARGET(reason=nothing), *plan.blockers]


def _unknown_target(aimed: NodePlan, view: HostView, subject: Subject) -> tuple[str, ...]:
    """The warning that the catalog does not have the new version: only a repository may have it."""
    kind = UNKNOWN_TARGETS.get(subject)
    if kind is None or view.before == view.target:
        return ()
    found = (each for each in aimed.all_findings if each.code == kind.code and not each.blocks)
    return tuple(f"{each.code} {each.sentences}" for each in found)


def _obstacles(
    seen: LookedHost, aimed: NodePlan, view: HostView, subject: Subject
) -> list[Finding]:
    """Why the host cannot be changed now. `aimed`: the plan of its target."""
    found = [each for each in aimed.blockers if each.code != GPU_HAS_WORK.code]  # waited for
    if subject == "reboot" and seen.facts.controller:
        found.append(findings.OWN_MACHINE())
    if view.before is None or found:
        return found
    gpus = {gpu.slot.lower() for gpu in seen.facts.gpus}.union(seen.facts.taken)  # lost ones too
    if seen.listed < len(gpus):
        found.append(findings.GPUS_MISSING_BEFORE(found=seen.listed, wanted=len(gpus)))
    if subject == "reboot":
        return found
    earlier = seen.planned(subject, view.before)
    left = plan_steps(earlier)
    if subject == "sharing":  # the run gives a host its first files of the role, too
        left = [step for step in left if not step.startswith(f"{GPU.name}: ")]
        found += [each for each in earlier.blockers if each.code != GPU_HAS_WORK.code]
    if left:
        what = "layout of the GPUs" if subject == "sharing" else subject
        found.append(findings.NOT_CONVERGED(subject=what, steps=list_names(left)))
    return found


def gpu_users(facts: NodeFacts, plan: NodePlan) -> tuple[str, ...]:
    """Pods and processes on the GPUs of a host. Its plan knows the work that gpufleet ends."""
    processes = gpu_work(facts, plan.context.spared if plan.context else frozenset())
    pods = (count_noun(facts.gpu_pods, "GPU pod"),) if facts.gpu_pods else ()
    return (*pods, *(str(process) for process in processes))
