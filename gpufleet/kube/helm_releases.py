"""Decodes Helm's record of a release: its Secrets of type helm.sh/release.v1. Pure.

Every user with write access to Secrets can create one that looks like Helm's. So the metadata
decides which release and revision a Secret belongs to: other labels make it ignored, other content
makes it unreadable.

Source: https://github.com/helm/helm/tree/main/pkg/storage/driver (base64 over gzip over JSON;
labels owner, name, status, version on each Secret; one Secret per revision).
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import yaml

from gpufleet.kube.facts import HelmRelease, ObjectRef, ReleaseRef, Revision
from gpufleet.kube.manifests import load_manifests
from gpufleet.kube.operated import load_operated_kinds
from gpufleet.kube.parse import Answer, object_ref, seconds_of

RELEASE_TYPE = "helm.sh/release.v1"
OWNER_LABEL = "gpufleet"  # on the Secrets of our releases; value: the machine that ran helm
ADOPTED_LABEL = "gpufleet-adopted"  # on the same Secrets, if gpufleet adopted the release
MAX_RELEASE_BYTES = 32 * 2**20  # of an unpacked release: a Secret of 1 MiB may unpack to 1 GiB
_SECRET = re.compile(r"sh\.helm\.release\.v1\.([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)\.v([1-9]\d{0,8})")
_HELMS_LABELS = ("name", "owner", "status", "version", "createdAt", "modifiedAt")
_CLAIM = "PersistentVolumeClaim"
_OPERATED = load_operated_kinds().by_kind
_KINDS = "|".join(("DaemonSet", "Deployment", "StatefulSet", _CLAIM, *_OPERATED))
_READ = re.compile(rf"^kind:\s*[\"']?({_KINDS})\b", re.MULTILINE)
_POLICY = "helm.sh/resource-policy"  # annotation; `keep`: Helm does not delete the object
_BROKEN = (
    *(KeyError, TypeError, AttributeError, ValueError, RecursionError),
    *(zlib.error, yaml.YAMLError),
)


class UndecodableRelease(ValueError):
    """A Secret with the metadata of a Helm release, but other content."""


def revision_of(secret: Answer) -> tuple[ReleaseRef, Revision] | None:
    """Release and revision from a Secret's metadata. None if it is not Helm's."""
    metadata = secret["metadata"]
    labels = metadata.get("labels") or {}
    match = _SECRET.fullmatch(metadata["name"])
    if match is None or labels.get("owner") != "helm":
        return None
    if (labels.get("name"), labels.get("version")) != match.groups():
        return None
    ref = ReleaseRef(metadata["namespace"], match[1])
    return ref, Revision(int(match[2]), labels.get("status") or "")


def newest_revisions(metadata: Iterable[Answer]) -> dict[ReleaseRef, str]:
    """Release -> name of the Secret of its newest revision, from the Secrets' metadata."""
    newest: dict[ReleaseRef, tuple[int, str]] = {}
    for item in metadata:
        if known := revision_of(item):
            ref, revision = known
            entry = (revision.number, item["metadata"]["name"])
            newest[ref] = max(newest.get(ref, entry), entry)
    return {ref: name for ref, (_, name) in newest.items()}


def release_histories(metadata: Iterable[Answer]) -> dict[ReleaseRef, tuple[Revision, ...]]:
    """Every revision of every release, oldest first."""
    found: dict[ReleaseRef, list[Revision]] = {}
    for item in metadata:
        if known := revision_of(item):
            found.setdefault(known[0], []).append(known[1])
    return {
        ref: tuple(sorted(revisions, key=lambda revision: revision.number))
        for ref, revisions in found.items()
    }


def installed_releases(metadata: Iterable[Answer]) -> tuple[ReleaseRef, ...]:
    """The releases with a revision that helm did not uninstall, in order."""
    histories = release_histories(metadata)
    return tuple(
        sorted(ref for ref, found in histories.items() if found[-1].status != "uninstalled")
    )


def decode_release(secret: Answer) -> HelmRelease:
    """The revision of a release in one Secret. Raises UndecodableRelease."""
    metadata = secret["metadata"]
    where = f"Secret {metadata.get('namespace')}/{metadata.get('name')}"
    known = revision_of(secret)
    if known is None or secret.get("type") != RELEASE_TYPE:
        raise UndecodableRelease(f"{where} is not a Helm release: its name, labels and type differ")
    try:
        decoded = _release(json.loads(_unpacked(secret)))
    except _BROKEN as bad:
        reason = " ".join(str(bad).split()) or type(bad).__name__
        raise UndecodableRelease(f"{where} is not a Helm release: {reason}") from bad
    ref, revision = known
    if (decoded.ref, decoded.revision, decoded.status) != (ref, revision.number, revision.status):
        holds = f"revision {decoded.revision} of {decoded.ref}, {decoded.status}"
        raise UndecodableRelease(f"{where} is not a Helm release: it contains {holds}")
    labels = metadata.get("labels") or {}
    return replace(
        decoded,
        labels={key: value for key, value in labels.items() if key not in _HELMS_LABELS},
        created=seconds_of(metadata.get("creationTimestamp")),
    )


def _unpacked(secret: Answer) -> bytes:
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)  # gzip
    content = unpacker.decompress(packed, MAX_RELEASE_BYTES)
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {MAX_RELEASE_BYTES} bytes")
    if not unpacker.eof:
        raise ValueError("it is truncated")
    return content


def _release(data: Any) -> HelmRelease:
    info = _of(dict, data, "info")
    chart = _of(dict, _of(dict, data, "chart"), "metadata")
    namespace = _of(str, data, "namespace")
    workloads, claims, operated = objects_in(str(data.get("manifest") or ""), namespace)
    return HelmRelease(
        name=_of(str, data, "name"),
        namespace=namespace,
        revision=_of(int, data, "version"),
        status=_of(str, info, "status"),
        chart=_of(str, chart, "name"),
        chart_version=_of(str, chart, "version"),
        app_version=str(chart.get("appVersion") or ""),
        values=_of(dict, data, "config") if data.get("config") else {},
        apply_method=str(data.get("apply_method") or ""),
        workloads=workloads,
        claims=claims,
        operated=operated,
    )


def _of(kind: type, data: Any, key: str) -> Any:
    """A member of that type. Raises ValueError for another type."""
    found = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(found, kind):
        raise ValueError(f"it has no {key}")
    return found


def objects_in(manifest: str, namespace: str) -> tuple[tuple[ObjectRef, ...], ...]:
    """A manifest's workloads (DaemonSets, Deployments, StatefulSets), its PersistentVolumeClaims
    without Helm's policy `keep`, and objects that an operator turns into workloads. Parses only
    their documents, because a manifest may have hundreds of kilobytes. Raises YAMLError."""
    workloads: list[ObjectRef] = []
    claims: list[ObjectRef] = []
    operated: list[ObjectRef] = []
    for document in re.split(r"^---\s*$", manifest, flags=re.MULTILINE):
        if not _READ.search(document):
            continue
        for content in load_manifests(document):
            if not isinstance(content, dict):
                continue
            ref = object_ref(content, namespace)
            policy = ((content.get("metadata") or {}).get("annotations") or {}).get(_POLICY)
            if ref.kind in _OPERATED:
                operated.append(ref)
            elif ref.kind != _CLAIM:
                workloads.append(ref)
            elif str(policy).strip().lower() != "keep":
                claims.append(ref)
    return tuple(workloads), tuple(claims), tuple(operated)
