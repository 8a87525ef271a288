"""The index of a chart repository: as helm writes it, in other forms, and invalid."""

from __future__ import annotations

import pytest

from gpufleet.helm.chart_index import BrokenIndex, IndexEntry, parse_index

# written by `helm repo index` of helm 3.22; the second version by hand, as in old repositories
INDEX = b"""apiVersion: v1
entries:
  another:
  - apiVersion: v2
    urls:
    - another-1.0.0.tgz
    version: 1.0.0
  tiny:
  - apiVersion: v2
    appVersion: v0.1.0
    created: "2026-11-21T07:32:25.672663195Z"
    dependencies:
    - condition: one.enabled,two.enabled
      name: one
      repository: ""
      version: 0.0.0
    description: A chart for the tests of releases; every part of it is switched by
      a value.
    digest: 8691f3074ac3e2bfe9dd897861ef9b72ce70730613455aff2adff746e7e29d90
    kubeVersion: '>= 1.16.0-0'
    name: tiny
    urls:
    - tiny-1.10.0.tgz
    - https://elsewhere.example.com/tiny-1.10.0.tgz
    version: 1.10.0
  - name: tiny
    urls: [https://elsewhere.example.com/tiny-0.90.tgz]
    version: 0.90
generated: "2026-11-21T07:32:25.671697908Z"
"""


def test_the_versions_of_one_chart() -> None:
    digest = "8691f3074ac3e2bfe9dd897861ef9b72ce70730613455aff2adff746e7e29d90"
    assert parse_index(INDEX, "tiny") == (
        IndexEntry("1.10.0", "tiny-1.10.0.tgz", digest, ">= 1.16.0-0"),
        IndexEntry("0.90", "https://elsewhere.example.com/tiny-0.90.tgz", ""),
    )
    assert parse_index(INDEX, "none") == ()


def test_json_is_yaml_too() -> None:
    text = (
        b'{"entries": {"tiny": [{"version": "1.0.0", "urls": ["a.tgz"], "digest": "sha256:AB"}]}}'
    )
    assert parse_index(text, "tiny") == (IndexEntry("1.0.0", "a.tgz", "ab"),)


@pytest.mark.parametrize("entries", [b"{}", b"null", b"{tiny: null}", b"{tiny: [{version: 1}]}"])
def test_a_repository_without_the_chart(entries: bytes) -> None:
    assert parse_index(b"apiVersion: v1\nentries: " + entries, "tiny") == ()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>Please log in</html>",
        b"- a\n- b\n",
        b"apiVersion: v1\n",
        b"entries: {tiny: [",
        b"entries: {[a]: b}",
        b"\xff\xfe\x00",
        INDEX[:300] + b"\n\t: x",
    ],
)
def test_what_is_no_index(text: bytes) -> None:
    with pytest.raises(BrokenIndex):
        parse_index(text, "tiny")
