"""Apply the plan of a Helm release: CRDs, repair, helm, readiness, rollback."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpufleet.core.findings import Finding
from gpufleet.core.process import Result
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.operations.crds import write_crds
from gpufleet.helm.operations.release_watch import Say, WaitResult, Watch
from gpufleet.helm.output import Failure, dropped_fields, error_line, explain_failure
from gpufleet.helm.pod_trial import explain_refusal
from gpufleet.helm.release import ReleasePlan, is_ours
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.namespaces import ensure_namespace
from gpufleet.kube.operations.refused import ApiError

HELM_TIMEOUT = 300  # seconds for hooks and requests of one helm call
AGAIN = "fix the cause and run again."


@dataclass(slots=True)
class Outcome:
    """The result of a plan. `changed`: whether something in the cluster changed."""

    ok: bool = True
    changed: bool = False
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def fail(self, *found: Finding) -> Outcome:
        self.ok = False
        self.findings += found
        return self


@dataclass(slots=True)
class ReleaseRun:
    """Applies the plan of one release. `archive`: its chart; None if nothing changes."""

    plan: ReleasePlan
    archive: Path | None
    api: ClusterApi
    helm: Helm
    facts: ClusterFacts
    say: Say

    def carry_out(self) -> Outcome:
        """Apply the plan. Raises nothing: errors are in the outcome."""
        outcome = Outcome()
        try:
            self._carry_out(outcome)
        except ClusterProblem as problem:
            outcome.fail(*problem.findings)
        return outcome

    def _carry_out(self, outcome: Outcome) -> None:
        watch = Watch(self.api, self.plan.release, self.say)
        if self.plan.changes:
            self._say_what()
            outcome.changed = True
            if not self._change(outcome, watch):
                return
        waited = watch.until_ready(self.plan.release.ready, changed=outcome.changed)
        outcome.findings += waited.findings
        outcome.seconds = waited.seconds
        if not waited.ready:
            self._not_ready(outcome, watch, waited)

    def _say_what(self) -> None:
        self.say(f"{self.plan.action}: {self.plan.reason}")
        for line in self.plan.diff:
            self.say(f"  {line}")

    def _change(self, outcome: Outcome, watch: Watch) -> bool:
        """Namespace, CRDs, repair, helm; whether all succeeded."""
        if self.plan.release.namespace not in self.facts.namespaces:
            ensure_namespace(self.api, self.plan.release.namespace)
        problem = write_crds(
            self.api, self.plan.crds, self.plan.release, self.facts.server, self.say
        )
        if problem:
            outcome.fail(problem)
            return False
        if self.plan.rollback_to is not None:
            self._repair(watch)
        self._remove_recreated()
        return self._upgrade(outcome, watch)

    def _remove_recreated(self) -> None:
        """Delete the workloads with immutable changes; helm recreates them."""
        for ref in self.plan.recreate:
            self.say(f"deleting {ref}: its selector changes")
            plural = f"{ref.kind.lower()}s"
            try:
                self.api.delete(f"/apis/apps/v1/namespaces/{ref.namespace}/{plural}/{ref.name}")
            except ApiError as error:
                if not error.is_missing:
                    raise

    def _repair(self, watch: Watch) -> None:
        """Roll a pending or failed release back to a good revision.

        If that fails, the upgrade that follows may still succeed; it reports the error.
        """
        revision = self.plan.rollback_to or 0
        self.say(f"rolling back to revision {revision} first")
        result = self._rollback(revision, watch)
        if not result.ok:
            self.say(f"rollback failed ({_said(result)}); trying the upgrade")

    def _upgrade(self, outcome: Outcome, watch: Watch) -> bool:
        assert self.archive is not None, "a plan that changes something has its chart"
        wanted = self.plan.release
        result = self.helm.upgrade(
            wanted,
            self.archive,
            self.plan.strategy,
            HELM_TIMEOUT,
            watch.during_helm,
            adopted=self._adopts,
        )
        if result.ok:
            outcome.findings += dropped_fields(result.stderr, wanted)
            return True
        outcome.fail(self._explained(result, watch))
        self._go_back(outcome, watch)
        return False

    @property
    def _adopts(self) -> bool:
        """Whether the release is there and was not created by gpufleet."""
        before = self.plan.before
        return before is not None and not is_ours(before)

    def _explained(self, result: Result, watch: Watch) -> Finding:
        wanted = self.plan.release
        what = "Upgrade" if self._good_before() else "Installation"
        why = [*watch.hook_reasons, *map(str, watch.why(watch.workloads()))]
        if result.code is None:
            return findings.HELM_HANGS(
                what=what,
                release=wanted.ref,
                seconds=HELM_TIMEOUT,
                reasons="; ".join(why) or error_line(result.stderr),
                state=self._state(),
            )
        stderr = "; ".join([result.stderr.rstrip(), *why]) if why else result.stderr
        return explain_failure(Failure(what, stderr, self._state()), wanted, self.facts)

    def _not_ready(self, outcome: Outcome, watch: Watch, waited: WaitResult) -> None:
        ref = self.plan.release.ref
        if waited.operands:  # a rollback would interrupt the operator's work on nodes
            outcome.fail(waited.operands)
            return
        refused = [explain_refusal(each, ref.namespace, ref) for each in waited.reasons]
        outcome.findings += dict.fromkeys(filter(None, refused))
        outcome.fail(
            findings.NOT_READY(
                release=ref,
                seconds=f"{waited.seconds:.0f}",
                reasons="; ".join(waited.reasons),
                remedy=self._state().capitalize(),
            )
        )
        self._go_back(outcome, watch)

    def _good_before(self) -> int | None:
        """The revision to roll back to if the new one fails; None without one."""
        before = self.plan.before
        if before is None or not self.plan.changes or self.plan.action == "repair":
            return None
        return before.last_good

    def _state(self) -> str:
        """The release's state after a failure, as the end of a remedy."""
        if self._good_before():
            return f"the release is rolled back; {AGAIN}"
        return f"the release is left as it is, so that its pods can be inspected; {AGAIN}"

    def _go_back(self, outcome: Outcome, watch: Watch) -> None:
        revision = self._good_before()
        before = self.plan.before
        if revision is None or before is None:
            return
        self.say(f"rolling back to revision {revision}")
        self._remove_recreated()  # the rollback reverts their selectors
        result = self._rollback(revision, watch)
        ref = self.plan.release.ref
        if result.ok:
            outcome.findings.append(
                findings.ROLLED_BACK(release=ref, revision=revision, chart=_chart_of(watch))
            )
            return
        outcome.fail(
            findings.ROLLBACK_FAILED(
                release=ref,
                revision=revision,
                error=_said(result),
                name=ref.name,
                namespace=ref.namespace,
            )
        )

    def _rollback(self, revision: int, watch: Watch) -> Result:
        return self.helm.rollback(
            self.plan.release, revision, self.plan.strategy, HELM_TIMEOUT, watch.during_helm
        )


def _chart_of(watch: Watch) -> str:
    now = watch.current()
    return f"{now.chart} {now.chart_version}" if now else "unknown"


def _said(result: Result) -> str:
    if result.code is None:
        return f"helm did not finish within {HELM_TIMEOUT} s"
    return error_line(result.stderr)
