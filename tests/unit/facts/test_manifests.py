"""YAML from clusters and charts, deep or growing."""

from __future__ import annotations

from itertools import pairwise

import pytest
import yaml

from gpufleet.facts.chart import BrokenChart, parse_chart
from gpufleet.facts.helm_release import workloads_in
from gpufleet.facts.manifests import DEEPEST, load_manifests

DEEP = "[" * 60_000  # more than PyYAML's C code can bear
BOMB = "a: &a [x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in pairwise("abcdefghij")
)


@pytest.mark.parametrize("text", [f"a: {DEEP}", "- " * 60_000, BOMB], ids=["flow", "block", "bomb"])
def test_what_is_too_deep_or_grows_too_large_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="more than"):
        load_manifests(text)
    with pytest.raises(yaml.YAMLError):
        workloads_in(f"kind: Deployment\n{text}", "default")
    with pytest.raises(BrokenChart):
        parse_chart({"Chart.yaml": b"name: x\nversion: 1.0.0\n", "values.yaml": text.encode()})


def test_what_is_usual_is_read() -> None:
    nested = "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    found = load_manifests(f"a: {nested}\n---\nx: &x {{y: 1}}\nz: *x\n---\nw: =\n")
    assert found[1:] == [{"x": {"y": 1}, "z": {"y": 1}}, {"w": "="}]
