"""What a run has to know of a host, from its facts and plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.versions import branch_of
from gpufleet.driver.disruption import gpu_work
from gpufleet.driver.needs import devices_of
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.distribution import code_of
from gpufleet.facts.files import HOME
from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import Catalog
from gpufleet.node.plan import NodePlan, plan_node, steps
from gpufleet.node.settings import NodeSettings
from gpufleet.packages.logins import Logins
from gpufleet.role.place import Place
from gpufleet.upgrade import findings
from gpufleet.upgrade.models import HostView, names

FOLDER = f"{HOME}/upgrade"  # on a host: what a run keeps there
CLAIMED = ("prepared", "changing", "restoring")  # states there of a host that a run is to finish


@dataclass(frozen=True, slots=True)
class Health:
    """What health.sh prints."""

    gpus: int = 0
    xids: str = "-"
    units: tuple[str, ...] = ()
    run: str = ""  # that the folder belongs to
    state: str = ""

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Health:
        words = [line.partition(" ")[::2] for line in lines]
        known = dict(words)
        gpus = known.get("gpus", "")
        return cls(
            gpus=int(gpus) if gpus.isdecimal() else 0,
            xids=known.get("xids", "-"),
            units=tuple(rest for word, rest in words if word == "unit"),
            run=known.get("run", ""),
            state=known.get("state", ""),
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """A host as it was read: the arguments of `plan_node`, and its health."""

    name: str
    settings: NodeSettings
    facts: NodeFacts
    catalog: Catalog
    now: int
    logins: Mapping[str, Logins]
    place: Place
    health: Health

    def planned(self, **driver: Any) -> NodePlan:
        """The plan with other settings of the driver; work on the GPUs is no obstacle to it: the
        run waits for it."""
        role = self.settings.of(DRIVER)
        changed = role.model_copy(update={"allow_disruption": True, **driver})
        settings = replace(self.settings, by_role={**self.settings.by_role, DRIVER.name: changed})
        return plan_node(settings, self.facts, self.catalog, self.now, self.logins, self.place)


def view_of(seen: Seen, run: str, place: str) -> HostView:
    """The host for the plan of a run. `run`: its name, "" for a new one; `place`: the value of the
    key of upgrade_wave_by."""
    facts = seen.facts
    view = HostView(
        name=seen.name,
        model=_model(seen),
        distribution=code_of(facts.os, seen.catalog.distributions),
        kernel=facts.kernel.release,
        loaded=facts.loaded_driver,
        work=work_on(seen),
        place=place,
        kubelet=facts.kubelet,
        machine=facts.machine_id,
    )
    plan = seen.planned()
    driver = plan.of(DRIVER)
    if not facts.gpus or driver is None:
        return replace(view, refusals=("no GPU" if not facts.gpus else "driver_enabled is False",))
    target = seen.settings.of(DRIVER).version or driver.choice.newest_known or None
    view = replace(view, before=driver.before, target=target)
    if target is None:
        return replace(view, refusals=_texts(plan.blockers))
    return replace(view, refusals=_texts(_obstacles(seen, driver, target, run)))


def _obstacles(seen: Seen, driver: DriverPlan, target: str, run: str) -> list[Finding]:
    """Why the host cannot be changed now."""
    exact = seen.planned(version=target, branch=str(branch_of(target)))
    found = list(exact.blockers)
    health = seen.health
    if health.state in CLAIMED and health.run != run:
        found.append(
            findings.ANOTHER_RUN(run=health.run, state=health.state, file=f"{FOLDER}/state")
        )
    if driver.before is None or found:
        return found
    if health.gpus < len(seen.facts.gpus):
        found.append(findings.GPUS_MISSING(found=health.gpus, wanted=len(seen.facts.gpus)))
    same = seen.planned(version=driver.before, branch=str(branch_of(driver.before)))
    if left := steps(same):
        found.append(findings.NOT_CONVERGED(steps=names(left)))
    return found


def _texts(found: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(f"{each.code} {each.message}" for each in found)


def _model(seen: Seen) -> str:
    """The GPUs of a host, as "2 x A100"."""
    ids = [gpu.device for gpu in seen.facts.gpus]
    models = devices_of(seen.catalog, ids)
    return " + ".join(f"{ids.count(model.id)} x {model.title}" for model in models)


def work_on(seen: Seen) -> tuple[str, ...]:
    """Pods and processes on the GPUs of a host."""
    facts = seen.facts
    spared = seen.planned().context
    processes = gpu_work(facts, spared.spared if spared else frozenset())
    pods = (f"{facts.gpu_pods} GPU pods",) if facts.gpu_pods else ()
    return (*pods, *(str(process) for process in processes))
