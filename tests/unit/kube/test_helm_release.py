"""Secrets that look like Helm's: how they are decoded, and the effect of forged or invalid ones."""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.kube.answers import cluster_facts
from gpufleet.kube.facts import ReleaseRef, Revision
from gpufleet.kube.helm_releases import (
    MAX_RELEASE_BYTES,
    UndecodableRelease,
    decode_release,
    newest_revisions,
    release_histories,
    revision_of,
)

pytestmark = pytest.mark.claim(
    "Damaged or huge Helm Secrets change nothing, or are a finding of their release.",
    level=1,
)

CAPTURE = Path(__file__).parent / "captures" / "cluster-1.36.3.answers.json"
OURS = ReleaseRef("monitoring", "dcgm-exporter")
CONTENT: dict[str, Any] = {
    "name": OURS.name,
    "namespace": OURS.namespace,
    "version": 1,
    "info": {"status": "deployed"},
    "chart": {"metadata": {"name": "dcgm-exporter", "version": "4.8.2"}},
    "config": {"a": 1},
    "manifest": "",
}


def packed(content: bytes) -> str:
    return base64.b64encode(base64.b64encode(gzip.compress(content))).decode()


def secret(content: Any = None, **metadata: Any) -> dict[str, Any]:
    """Helm's Secret for CONTENT with these changes."""
    labels = {"owner": "helm", "name": OURS.name, "version": "1", "status": "deployed"}
    whole = {**CONTENT, **(content or {})}
    return {
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": f"sh.helm.release.v1.{OURS.name}.v1",
            "namespace": OURS.namespace,
            "labels": labels,
            "creationTimestamp": "2026-11-22T10:00:00Z",
            **metadata,
        },
        "data": {"release": packed(json.dumps(whole).encode())},
    }


def test_a_release_as_helm_writes_it() -> None:
    found = decode_release(secret())
    assert (found.ref, found.revision, found.status) == (OURS, 1, "deployed")
    assert (found.chart, found.chart_version, found.values) == ("dcgm-exporter", "4.8.2", {"a": 1})
    assert found.created == 1_795_341_600


@pytest.mark.parametrize(
    "content",
    [
        {"namespace": "monitoring2"},
        {"name": "other"},
        {"version": 2},
        {"info": {"status": "failed"}},
        {"info": "deployed"},
        {"chart": {"metadata": {"name": "dcgm-exporter"}}},
        {"config": ["a list"]},
        {"manifest": "---\nkind: DaemonSet\nmetadata: [\n"},
        {"version": "1"},
        {"chart": None},
    ],
    ids=str,
)
def test_content_that_contradicts_the_metadata_is_rejected(content: Any) -> None:
    with pytest.raises(UndecodableRelease, match=r"Secret monitoring/sh\.helm\.release\.v1\."):
        decode_release(secret(content))


ODD = {
    "nothing": None,
    "empty": {},
    "a number": {"release": 7},
    "no base64": {"release": "no base64!"},
    "no gzip": {"release": base64.b64encode(b"no gzip").decode()},
    "no JSON": {"release": packed(b"no JSON")},
    "a list": {"release": packed(b"[]")},
    "too deep": {"release": packed(b"[" * 100_000)},
    "no text": {"release": packed(b"\xff\xfe")},
    "cut": {"release": base64.b64encode(base64.b64encode(gzip.compress(b"{}")[:-4])).decode()},
}


@pytest.mark.parametrize("odd", ODD)
def test_a_secret_with_any_content_raises_only_undecodable_release(odd: str) -> None:
    with pytest.raises(UndecodableRelease, match="is not a Helm release"):
        decode_release({**secret(), "data": ODD[odd]})


def test_unpacked_size_is_limited() -> None:
    bomb = secret({"manifest": " " * (MAX_RELEASE_BYTES + 1)})
    assert len(bomb["data"]["release"]) < 200_000
    with pytest.raises(UndecodableRelease, match=f"more than {MAX_RELEASE_BYTES} bytes"):
        decode_release(bomb)


def test_a_secret_of_another_type_is_ignored() -> None:
    with pytest.raises(UndecodableRelease):
        decode_release({**secret(), "type": "Opaque"})


LABELS = {"owner": "helm", "name": "dcgm-exporter", "version": "9", "status": "deployed"}


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {}},
        {"labels": None},
        {"labels": {**LABELS, "version": "x"}},
        {"labels": {**LABELS, "version": "9" * 5000}},
        {"labels": {**LABELS, "name": "kube-prometheus-stack"}},
        {"labels": {**LABELS, "owner": "me"}},
        {"labels": LABELS, "name": "anything"},
        {"labels": LABELS, "name": "sh.helm.release.v1.dcgm-exporter.v09"},
        {"labels": {**LABELS, "version": "9" * 10},
         "name": "sh.helm.release.v1.dcgm-exporter.v" + "9" * 10},
    ],
    ids=str,
)  # fmt: skip
def test_a_secret_with_inconsistent_metadata_is_ignored(metadata: dict[str, Any]) -> None:
    forged = secret(**{"name": "sh.helm.release.v1.dcgm-exporter.v9", **metadata})
    real = secret()
    assert revision_of(forged) is None
    assert newest_revisions([real, forged]) == {OURS: "sh.helm.release.v1.dcgm-exporter.v1"}
    assert release_histories([real, forged]) == {OURS: (Revision(1, "deployed"),)}


def test_a_forged_secret_changes_nothing_and_an_invalid_one_only_its_release() -> None:
    answers = dict(json.loads(CAPTURE.read_text()))
    plain = cluster_facts("c", answers)
    forged = secret(namespace="tenant")  # content of our release, in another namespace
    garbled = {**secret({"name": "x"}, namespace="team"), "data": {"release": "x"}}
    answers["secrets"] = [*answers["secrets"], forged, garbled]
    answers["releases"] = [*answers["releases"], forged, garbled]
    found = cluster_facts("c", answers)
    assert found.releases == plain.releases
    assert {ref.namespace for ref in found.unreadable} == {"tenant", "team"}
    assert (
        "revision 1 of monitoring/dcgm-exporter"
        in found.unreadable[ReleaseRef("tenant", OURS.name)]
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(CONTENT)), JSON)
def test_no_content_raises_anything_else(key: str, value: Any) -> None:
    with suppress(UndecodableRelease):
        decode_release(secret({key: value}))
