"""Pods of rendered workloads, for a dry run, and what the API server says of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.pod_reasons import POD_SECURITY, QUOTA
from gpufleet.helm.release import ReleasePlan
from gpufleet.kube.facts import ObjectRef, ReleaseRef
from gpufleet.kube.parse import object_ref

KINDS = ("DaemonSet", "Deployment", "StatefulSet")
# Their objects may be part of the same release, and admission would refuse a pod without them.
_MADE_LATER = ("serviceAccount", "runtimeClassName", "nodeName")


def trial_pods(
    plan: ReleasePlan, objects: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[ObjectRef, dict[str, Any]]]:
    """The workloads of a release, each with a pod as its controller would create it."""
    for item in objects:
        if item.get("kind") not in KINDS:
            continue
        template = item["spec"]["template"]
        kept = {key: value for key, value in template["spec"].items() if key not in _MADE_LATER}
        account = {"serviceAccountName": "default", "automountServiceAccountToken": False}
        labels = (template.get("metadata") or {}).get("labels") or {}
        yield (
            object_ref(item, plan.release.namespace),
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "gpufleet-trial", "labels": labels},
                "spec": {**kept, **account},
            },
        )


def explain_refusal(message: str, namespace: str, release: ReleaseRef) -> Finding | None:
    """Why pods of a release are refused in a namespace; None for another reason than pod security
    and quotas, which may be due to the trial itself."""
    if POD_SECURITY in message:
        level = message.partition(POD_SECURITY)[2].split(":")[0].strip(' "')
        return findings.POD_SECURITY(namespace=namespace, level=level, release=release)
    if QUOTA in message:
        return findings.QUOTA(namespace=namespace, release=release, error=message)
    return None
