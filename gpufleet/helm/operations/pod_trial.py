"""Ask the API server, before anything is changed, whether it would accept the pods of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.helm.pod_trial import explain_refusal, trial_pods
from gpufleet.helm.release import ReleasePlan
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.permissions import speaks_of_permissions

_FORBIDDEN = 403


def refused_pods(
    api: ClusterApi, plan: ReleasePlan, objects: Sequence[Mapping[str, Any]], facts: ClusterFacts
) -> list[Finding]:
    """Why the pods of a release would be refused in the namespaces that exist, by a dry run.

    Without the permission to create pods, and for a namespace that this run creates, nothing.
    """
    found: list[Finding] = []
    for ref, pod in trial_pods(plan, objects):
        if ref.namespace not in facts.namespaces:
            continue
        try:
            api.try_create(f"/api/v1/namespaces/{ref.namespace}/pods", pod)
        except ApiError as error:
            if error.status != _FORBIDDEN or speaks_of_permissions(error.message):
                continue
            why = explain_refusal(error.message, ref.namespace, plan.release.ref)
            found += [why] if why and why not in found else []
    return found
