"""Applies the plan of a Helm release: CRDs, repair, helm, readiness, rollback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.process import ProgramResult
from gpufleet.core.quoting import keep_output
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.operations.crds import write_crds
from gpufleet.helm.operations.release_wait import (
    Say,
    explain_not_ready,
    read_release,
    read_state,
    wait_for_release,
)
from gpufleet.helm.output import Failure, dropped_fields, error_line, explain_failure
from gpufleet.helm.release import ReleasePlan, is_our_release
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.objects import annotate_object, ensure_namespace
from gpufleet.kube.operations.refused import ApiError

KEEP_POLICY = {"helm.sh/resource-policy": "keep"}  # helm reads it from the object in the cluster
HELM_TIMEOUT = 300  # seconds for hooks and requests of one helm call
FIX_AND_RERUN = "fix the cause and run again."


@dataclass(slots=True)
class ReleaseOutcome:
    """The result of a plan. `changed`: True if something in the cluster changed."""

    ok: bool = True
    changed: bool = False
    findings: list[Finding] = field(default_factory=list)

    def fail(self, *found: Finding) -> ReleaseOutcome:
        self.ok = False
        self.findings += found
        return self


@dataclass(slots=True)
class ReleaseRun:
    """Applies the plan of one release."""

    plan: ReleasePlan
    api: ClusterApi
    helm: Helm
    facts: ClusterFacts
    say: Say

    def carry_out(self) -> ReleaseOutcome:
        """Apply the plan. Raises nothing: errors are in the outcome."""
        outcome = ReleaseOutcome()
        try:
            self._carry_out(outcome)
        except ClusterProblem as problem:
            outcome.fail(*problem.findings)
        return outcome

    def _carry_out(self, outcome: ReleaseOutcome) -> None:
        release, changed = self.plan.release, self.plan.changes
        if changed:
            self.say(f"{self.plan.action}: {self.plan.reason}")
            for line in self.plan.diff:
                self.say(f"  {line}")
            outcome.changed = True
            if not self._change(outcome):
                return
        waited = wait_for_release(self.api, release, self.facts, self.say, changed=changed)
        outcome.findings += waited.findings
        reasons, spent = "; ".join(waited.reasons), f"{waited.seconds:.0f}"
        of: dict[str, Any] = {"release": release.ref, "seconds": spent, "reasons": reasons}
        if waited.operands:  # a rollback would interrupt the operator's work on nodes
            outcome.fail(findings.OPERATOR_NOT_READY(**of, namespace=release.namespace))
        elif reasons:
            outcome.fail(findings.NOT_READY(**of, remedy=self._state().capitalize()))
            self._go_back(outcome)

    def _change(self, outcome: ReleaseOutcome) -> bool:
        """Create the namespace and CRDs, repair, run helm. Returns True if all succeeded."""
        wanted = self.plan.release
        if wanted.namespace not in self.facts.namespaces:
            ensure_namespace(self.api, wanted.namespace)
        problem = write_crds(self.api, self.plan.crds, wanted, self.facts.server, self.say)
        if problem:
            outcome.fail(problem)
            return False
        for ref in self.plan.kept:
            self.say(f"keeping {ref}, which helm would delete")
            annotate_object(self.api, ref, KEEP_POLICY)
        revision = self.plan.rollback_to
        if revision is not None:  # a pending or failed release
            self.say(f"rolling back to revision {revision} first")
            result = self.helm.rollback(wanted, revision, self.plan.strategy, HELM_TIMEOUT)
            if not result.ok:
                self.say(f"rollback failed ({_said(result)}); trying the upgrade")
        self._remove_recreated()
        return self._upgrade(outcome)

    def _remove_recreated(self) -> None:
        """Delete the workloads with changes to immutable fields. helm recreates them."""
        for ref in self.plan.recreate:
            self.say(f"deleting {ref}: its selector changes")
            plural = f"{ref.kind.lower()}s"
            try:
                self.api.delete(f"/apis/apps/v1/namespaces/{ref.namespace}/{plural}/{ref.name}")
            except ApiError as error:
                if not error.is_missing:
                    raise

    def _upgrade(self, outcome: ReleaseOutcome) -> bool:
        assert self.plan.archive is not None, "a plan that changes something has its chart"
        wanted, before = self.plan.release, self.plan.before
        adopted = before is not None and not is_our_release(before)
        result = self.helm.upgrade(
            wanted, self.plan.archive, self.plan.strategy, HELM_TIMEOUT, adopted=adopted
        )
        if result.ok:
            outcome.findings += dropped_fields(result.stderr, wanted)
            return True
        what = "Upgrade" if self._good_before() else "Installation"
        now = read_state(self.api, wanted, self.facts, nodes=False)
        late = explain_not_ready(self.api, now.workloads_of(wanted.ref), hooks_in=wanted.namespace)
        why = "; ".join(reason.text for reason in late)
        if result.code is None:
            said = f"helm did not end within {HELM_TIMEOUT} s: {why or error_line(result.stderr)}"
        else:
            said = f"{result.stderr.rstrip()}; {why}" if why else result.stderr
        log = keep_output(str(wanted.ref), result.stderr.splitlines())
        failure = Failure(what, said, self._state(), log)
        outcome.fail(explain_failure(failure, wanted, self.facts))
        self._go_back(outcome)
        return False

    def _good_before(self) -> int | None:
        """The revision to roll back to if the new one fails, or None."""
        before = self.plan.before
        if before is None or not self.plan.changes or self.plan.action == "repair":
            return None
        return before.last_good

    def _state(self) -> str:
        """The release's state after a failure, as the end of a remedy."""
        if self._good_before():
            return f"the release is rolled back; {FIX_AND_RERUN}"
        return f"the release is left as it is, so that its pods can be inspected; {FIX_AND_RERUN}"

    def _go_back(self, outcome: ReleaseOutcome) -> None:
        revision = self._good_before()
        if revision is None:
            return
        self.say(f"rolling back to revision {revision}")
        self._remove_recreated()  # the rollback reverts their selectors
        release = self.plan.release
        result = self.helm.rollback(release, revision, self.plan.strategy, HELM_TIMEOUT)
        if result.ok:
            now = read_release(self.api, release)
            chart = f"{now.chart} {now.chart_version}" if now else "unknown"
            back = findings.ROLLED_BACK(release=release.ref, revision=revision, chart=chart)
            outcome.findings.append(back)
            return
        manually = f"helm rollback {release.name} {revision} -n {release.namespace}"
        what, error = f"Rollback to revision {revision}", _said(result)
        state = f"Run again: the release is recovered first. Manually: {manually}"
        outcome.fail(findings.HELM_FAILED(what=what, release=release.ref, error=error, state=state))


def _said(result: ProgramResult) -> str:
    if result.code is None:
        return f"helm did not finish within {HELM_TIMEOUT} s"
    return error_line(result.stderr)
