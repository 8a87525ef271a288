"""YAML from clusters and charts that is deeply nested, or expands when it is parsed."""

from __future__ import annotations

import time

import pytest
import yaml

from gpufleet.core.yaml_events import DEEPEST
from gpufleet.helm.chart import BrokenChart, parse_chart
from gpufleet.helm.chart_index import BrokenIndex, parse_index
from gpufleet.kube.helm_releases import objects_in
from gpufleet.kube.manifests import load_manifests

DEEP = "[" * 60_000  # more than PyYAML's C code can handle
TAGS = "".join(f"%TAG !a{number}! tag:x\n" for number in range(60_000)) + "---\na: 1\n"
TEXTS = {"flow": f"a: {DEEP}", "block": "- " * 60_000, "directives": TAGS}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_too_deep_is_rejected(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="more than"):
        load_manifests(text)
    with pytest.raises(yaml.YAMLError):
        objects_in(f"kind: Deployment\n{text}", "default")
    with pytest.raises(BrokenChart):
        parse_chart({"Chart.yaml": b"name: x\nversion: 1.0.0\n", "values.yaml": text.encode()})


@pytest.mark.parametrize(
    "text",
    [f"entries: {DEEP * 10}", *(TAGS.replace("\n", end) for end in "\n\r\x85\u2028")],
    ids=["flow", "directives", "after CR", "after NEL", "after LS"],
)
def test_an_index_that_is_too_large_is_rejected_early(text: str) -> None:
    began = time.process_time()
    with pytest.raises(BrokenIndex, match="more than"):
        parse_index(text.encode(), "tiny")
    assert time.process_time() - began < 5  # it used to take an hour


def test_invalid_utf_8_is_rejected() -> None:
    with pytest.raises(BrokenIndex, match="not UTF-8"):
        parse_index("entries: {}".encode("utf-16"), "tiny")


def test_common_yaml_is_read() -> None:
    nested = "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    found = load_manifests(f"a: {nested}\n---\nx: &x {{y: 1}}\nz: *x\n---\nw: =\n")
    assert found[1:] == [{"x": {"y": 1}, "z": {"y": 1}}, {"w": "="}]
