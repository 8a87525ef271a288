"""The manifest of a bundle: places of files, and texts that are no manifest."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.bundle.models import (
    BundleManifest,
    BundlePart,
    NoManifestError,
    manifest_text,
    merge_parts,
    parse_manifest,
    part_of,
    place_of,
)
from tests.unit.bundle.bundles import NO_SKOPEO, REPOSITORIES, file_of

FILE = file_of("a/one.deb", b"one")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://a.example.com/x/one_1%3a2.deb", "a.example.com/x/one_1:2.deb"),
        ("http://a.example.com/x/one_1%253a2.deb", "a.example.com/x/one_1%3a2.deb"),
        ("http://a.example.com/./x//one.deb", "a.example.com/x/one.deb"),
        ("http://a.example.com:8080/x", "a.example.com-8080/x"),
        ("http://user:word@a.example.com/x", ""),
        ("http://a.example.com/x?token=word", ""),
        ("http://a.example.com/x/%2e%2e/%2e%2e/y", ""),
        ("http://a.example.com/../y", ""),
        ("http://../y", ""),
        ("http://a.example.com/x\\y", ""),
        ("http://a.example.com/x%0ay", ""),
        ("file:///srv/x.deb", ""),
        ("ftp://a.example.com/x", ""),
    ],
)
def test_a_file_is_at_the_address_that_it_had(url: str, place: str) -> None:
    assert place_of(url) == place


@given(st.text())
def test_no_address_leads_out_of_the_folder(path: str) -> None:
    try:
        place = place_of(f"http://host/{path}")
    except ValueError:  # no URL
        return
    assert not place.startswith("/")
    assert not {"", ".", ".."}.intersection(place.split("/")) or not place


def test_a_manifest_is_read_as_it_was_written() -> None:
    made = BundleManifest((FILE,), REPOSITORIES, (NO_SKOPEO,), "1.2", "2026-11-29T00:00:00Z")
    read = parse_manifest(manifest_text(made).encode())
    assert (read.files, read.repositories, read.lacking) == (
        made.files,
        made.repositories,
        made.lacking,
    )
    assert read.digest, "of the bytes that were read"


@pytest.mark.parametrize(
    "changes",
    [
        {"gpufleet_bundle": 2},
        {"files": [{"path": "x"}]},
        {"files": None},
        {"created": None, "files": 3},
        {"files": [{**vars_of, "path": path} for vars_of in ({},) for path in ("../x",)]},
    ],
)
def test_what_is_no_manifest_is_refused(changes: dict[str, Any]) -> None:
    whole = json.loads(manifest_text(BundleManifest((FILE,))))
    with pytest.raises(NoManifestError):
        parse_manifest(json.dumps({**whole, **changes}).encode())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("path", "../one.deb"),
        ("path", "/etc/passwd"),
        ("path", "a//b"),
        ("path", "a/\x1b[31m"),
        ("sha256", "0"),
        ("sha256", "../../../etc/passwd"),
        ("size", "12"),
    ],
)
def test_a_manifest_names_no_file_outside_and_no_wrong_digest(key: str, value: str) -> None:
    whole = json.loads(manifest_text(BundleManifest((FILE,))))
    whole["files"][0][key] = value
    with pytest.raises(NoManifestError):
        parse_manifest(json.dumps(whole).encode())


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b"{", b'"x"', b"[" * 100_000])
def test_any_other_text_is_no_manifest(text: bytes) -> None:
    with pytest.raises(NoManifestError):
        parse_manifest(text)


def test_parts_are_merged_in_a_stable_order() -> None:
    one = BundlePart((file_of("b", b"b"), FILE), REPOSITORIES)
    two = BundlePart((FILE,), REPOSITORIES[1:], (NO_SKOPEO,))
    merged = merge_parts([one, two])
    assert [file.path for file in merged.files] == ["a/one.deb", "b"]
    assert merged == merge_parts([two, one])
    assert part_of(asdict(merged)) == merged
