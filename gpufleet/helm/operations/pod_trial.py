"""Asks the API server before any change if it would accept the pods of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.release import ReleasePlan
from gpufleet.kube.answers import WATCHED_KINDS
from gpufleet.kube.facts import ClusterFacts, ObjectRef, ReleaseRef
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import object_ref
from gpufleet.kube.permissions import speaks_of_permissions
from gpufleet.kube.pod_reasons import POD_SECURITY_MESSAGE, QUOTA_MESSAGE

# These objects may belong to the same release. Admission would refuse a pod without them.
_MADE_LATER = ("serviceAccount", "runtimeClassName", "nodeName")


def trial_pods(
    plan: ReleasePlan, objects: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[ObjectRef, dict[str, Any]]]:
    """The workloads of a release, each with a pod as its controller would create it."""
    for item in objects:
        if item.get("kind") not in WATCHED_KINDS:
            continue
        template = item["spec"]["template"]
        kept = {key: value for key, value in template["spec"].items() if key not in _MADE_LATER}
        account = {"serviceAccountName": "default", "automountServiceAccountToken": False}
        labels = (template.get("metadata") or {}).get("labels") or {}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "gpufleet-trial", "labels": labels},
            "spec": {**kept, **account},
        }
        yield object_ref(item, plan.release.namespace), pod


def explain_refusal(message: str, namespace: str, release: ReleaseRef) -> Finding | None:
    """Why pods of a release are refused in a namespace. None if the reason is neither pod security
    nor a quota, because the dry run itself may be the cause."""
    if POD_SECURITY_MESSAGE in message:
        level = message.partition(POD_SECURITY_MESSAGE)[2].split(":")[0].strip(' "')
        return findings.POD_SECURITY(namespace=namespace, level=level, release=release)
    if QUOTA_MESSAGE in message:
        return findings.QUOTA(namespace=namespace, release=release, error=message)
    return None


_FORBIDDEN = 403


def refused_pods(
    api: ClusterApi, plan: ReleasePlan, objects: Sequence[Mapping[str, Any]], facts: ClusterFacts
) -> list[Finding]:
    """Dry-run the pods of a release, and return why existing namespaces would refuse them.

    Returns nothing without permission to create pods, and for a namespace that this run creates.
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
