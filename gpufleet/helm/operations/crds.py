"""Writes CRDs before the chart that needs them, and waits until the server uses them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.helm.crds import is_published
from gpufleet.helm.release import CrdStep, Release
from gpufleet.kube.facts import ServerVersion
from gpufleet.kube.findings import WRITE_REFUSED
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import true_condition

PUBLISHED_IN = 60  # seconds to wait until the server uses a new schema
LOOK_EVERY = 0.25  # seconds
OPENAPI_V3 = ServerVersion(1, 27)  # newer servers serve one document per group


def live_crds(api: ClusterApi, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The cluster's complete CRDs. Missing ones are omitted."""
    group = {"apiVersion": "apiextensions.k8s.io/v1"}
    found = {name: api.find(_path(group, name)) for name in names}
    return {name: crd for name, crd in found.items() if crd}


def write_crds(
    api: ClusterApi,
    steps: Sequence[CrdStep],
    release: Release,
    server: ServerVersion,
    say: Callable[[str], None],
) -> Finding | None:
    """Write CRDs and wait until the server uses them. Returns the finding of a failure."""
    for step in steps:
        change = f"{step.before or 'unknown'} -> {step.after}" if step.after else step.action
        say(f"CRD {step.name}: {change}")
        try:
            _write(api, step)
        except ApiError as error:
            return _refused(step, release, error.message or str(error))
    began = time.monotonic()
    waiting = list(steps)
    while waiting := [step for step in waiting if not _in_use(api, step, server)]:
        if time.monotonic() - began > PUBLISHED_IN:
            late = f"the server does not use it after {PUBLISHED_IN} s"
            return _refused(waiting[0], release, late)
        time.sleep(LOOK_EVERY)
    return None


def _refused(step: CrdStep, release: Release, error: str) -> Finding:
    action = f"apply CRD {step.name} of chart {release.chart} {release.version}"
    reason = f"{error.rstrip('.')}; the release was not changed"
    return WRITE_REFUSED(action=action, reason=reason)


def _write(api: ClusterApi, step: CrdStep) -> None:
    path = _path(step.manifest, step.name)
    if step.method == "apply":
        api.apply(path, step.manifest)
    elif step.action == "create":
        api.create(path.rsplit("/", 1)[0], step.manifest)
    else:
        metadata = dict(api.get(path)["metadata"])
        new = step.manifest["metadata"]
        for key in ("annotations", "labels"):
            metadata[key] = {**(metadata.get(key) or {}), **(new.get(key) or {})}
        metadata.pop("managedFields", None)
        api.replace(path, {**step.manifest, "metadata": metadata})


def _path(manifest: Mapping[str, Any], name: str) -> str:
    return f"/apis/{manifest['apiVersion']}/customresourcedefinitions/{name}"


def _in_use(api: ClusterApi, step: CrdStep, server: ServerVersion) -> bool:
    """True if the CRD is established and the server's OpenAPI document has its new schema."""
    if not true_condition(api.get(_path(step.manifest, step.name)), "Established"):
        return False
    spec = step.manifest["spec"]
    for version in spec.get("versions") or ():
        if version.get("served"):
            document = _description(api, spec["group"], version["name"], server)
            if not is_published(document, spec["group"], spec["names"]["kind"], version):
                return False
    return True


def _description(api: ClusterApi, group: str, version: str, server: ServerVersion) -> Any:
    """The definitions of the OpenAPI document that describes a group's kinds."""
    if server < OPENAPI_V3:
        return api.get("/openapi/v2").get("definitions")
    document = api.find(f"/openapi/v3/apis/{group}/{version}") or {}  # {}: the group is new
    return (document.get("components") or {}).get("schemas")
