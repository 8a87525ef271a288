"""Helm releases in pyinfra: a cluster is a host, and an operation applies a release to it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pyinfra import host, logger, state
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line
from gpufleet.gpu_stack.operations.accesses import open_stack_cluster
from gpufleet.gpu_stack.settings import ClusterSettings, load_cluster_settings
from gpufleet.helm.chart_values import shorten_diff
from gpufleet.helm.findings.releases import KIND_MISSING
from gpufleet.helm.operations.cluster import RunCluster
from gpufleet.helm.release import Release, ReleasePlan
from gpufleet.host.operation import Commands, host_operation
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.run.report import HostReport
from gpufleet.run.reporting import RunReport


@dataclass(slots=True)
class ClusterRun:
    """The cluster of this deploy: its settings, its facts and the releases planned so far.

    `preview`: nothing is changed. `blocked`: a release of the preview has a blocker.
    """

    settings: ClusterSettings
    cluster: RunCluster
    report: HostReport
    preview: bool = False
    blocked: bool = False
    releases: list[dict[str, Any]] = field(default_factory=list)

    @property
    def facts(self) -> ClusterFacts:
        """The facts from the start of the run."""
        return self.cluster.facts

    def note(self, planned: ReleasePlan) -> None:
        """Add a plan to the report."""
        before = planned.before
        name = planned.release.name
        if planned.needed:
            version = planned.release.version
            lines = [f"{name}: {planned.action} ({planned.reason}), chart {version}"]
            lines += [f"{step.action} CRD {step.name}" for step in planned.crds]
            lines += [f"keep {ref}, which helm would delete" for ref in planned.kept]
            lines += planned.diff if state.config.DIFF else shorten_diff(planned.diff)
            self.report.steps.append("\n  ".join(lines))
        kept = planned.action in ("no-op", "wait", "blocked") and before
        self.report.releases[name] = {
            "before": before.chart_version if before else None,
            "after": before.chart_version if before and kept else planned.release.version,
        }
        self.releases.append(describe_release(planned))
        self.report.plan["releases"] = self.releases
        self.report.findings += [
            found for found in planned.findings if found not in self.report.findings
        ]


def describe_release(plan: ReleasePlan) -> dict[str, Any]:
    """A plan as data for preflight's JSON."""
    wanted = plan.release
    return {
        "name": wanted.name,
        "namespace": wanted.namespace,
        "chart": wanted.chart,
        "version": wanted.version,
        "action": plan.action,
        "reason": plan.reason,
        "diff": list(plan.diff),
        "crds": [step.name for step in plan.crds],
        "kept": [*map(str, plan.kept)],
        "helm": list(plan.strategy.reasons),
    }


def current_cluster(*, supported_only: bool = False, preview: bool = False) -> ClusterRun | None:
    """The cluster of this deploy, or None if a blocker stops it; other hosts continue.

    All problems of its settings are reported at once. `supported_only`: a cluster older than the
    catalog's charts is a problem. `preview`: nothing will be changed, so it is not locked.
    """
    report = RunReport.of(state)
    part = report.host(host.name)
    part.kind = "cluster"
    given = host.inventory.get_override_data()
    settings, problems = load_cluster_settings(host.data.dict(), given)
    if settings is None:
        report.block(host, problems)
        return None
    wanted = settings.cluster
    began = time.monotonic()
    try:
        cluster = open_stack_cluster(
            host.name,
            settings,
            supported_only=supported_only,
            wait=None if preview or report.invocation.dry else wanted.lock_timeout,
            say=_say(host),
        )
    except ClusterProblem as problem:
        report.block(host, list(problem.findings))
        return None
    part.seconds += time.monotonic() - began
    part.examined = True
    return ClusterRun(settings, cluster, part, preview)


def apply_release(
    sentence: str, run: ClusterRun, release: Release, later: Iterable[Release]
) -> None:
    """Plan a release and add the operation that applies it; `sentence` is its name in the output.

    A blocker stops the whole cluster before this run changes it, with the blockers of the `later`
    releases. A preview continues with them itself.
    """
    plan = run.cluster.plan(release)
    if run.preview and run.blocked:
        plan = replace(plan, findings=_after_blocked(plan))
    run.note(plan)
    if run.preview:
        run.blocked = run.blocked or plan.action == "blocked"
    elif plan.blockers:
        plans = [run.cluster.plan(each) for each in later]
        found = [each for plan in plans for each in _after_blocked(plan) if each.blocks]
        RunReport.of(state).block(host, found)
    else:
        _apply(sentence, run, plan)


def _after_blocked(plan: ReleasePlan) -> tuple[Finding, ...]:
    """The findings of a plan after a blocked one, whose release may add the kinds that it lacks."""
    return tuple(found for found in plan.findings if found.code != KIND_MISSING.code)


@host_operation
def _apply(run: ClusterRun, plan: ReleasePlan) -> Commands:
    """
    Apply the plan of one Helm release and wait until it is ready.

    + run: the cluster
    + plan: the release's plan
    """
    if plan.changes:
        yield FunctionCommand(_carry_out, (run, plan), {})
        return
    if plan.needed and state.is_executing:  # waiting changes nothing, so no command is needed
        _carry_out(state, host, run, plan)
        return
    host.noop(f"{plan.release.name}: {plan.reason}")


def _carry_out(state: State, host: Host, run: ClusterRun, plan: ReleasePlan) -> bool:
    """Carry out the plan. Raises ClusterProblem with the blockers if it is not completed.

    pyinfra uses the return value only of a function that takes `state` and `host`.
    """
    if not state.config.DIFF:
        plan = replace(plan, diff=shorten_diff(plan.diff))
    outcome = run.cluster.carry_out(plan, _say(host))
    known = run.report.findings
    known += [found for found in outcome.findings if found not in known]
    if not outcome.ok:
        raise ClusterProblem(*(found for found in outcome.findings if found.blocks))
    if plan.changes:
        run.report.seen[plan.release.name] = plan.release.version
    return True


def _say(host: Host) -> Any:
    """A function that prints a line about a host while an operation runs on it."""
    prefix = host.print_prefix

    def say(line: str) -> None:
        logger.info(f"{prefix}{one_line(line)}")

    return say
