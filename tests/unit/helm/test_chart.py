"""Contents of chart archives: values of subcharts, disabled CRDs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.helm.chart import BrokenChart, ChartContent, parse_chart


def crd(name: str) -> str:
    spec = "{group: example.com, names: {kind: Thing}}"
    return (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        f"metadata: {{name: {name}}}\nspec: {spec}\n"
    )


FILES = {
    "Chart.yaml": "name: stack\nversion: 1.2.3\nappVersion: v0.9\nkubeVersion: '>=1.25.0-0'\n"
    "dependencies:\n"
    "  - {name: crds, condition: crds.enabled}\n"
    "  - {name: nfd, alias: discovery, condition: 'discovery.install, other.path'}\n"
    "  - {name: nfd, alias: second, condition: second.install}\n",
    "values.yaml": "crds: {enabled: true}\ndiscovery: {install: false, image: ours}\n"
    "second: {install: false}\n",
    "crds/own.yaml": crd("a.example") + "---\n" + crd("b.example"),
    "crds/README.md": "no CRD",
    "templates/x.yaml": "{{ not yaml",
    "charts/crds/Chart.yaml": "name: crds\nversion: 0.0.0\n",
    "charts/crds/crds/c.yaml": crd("c.example"),
    "charts/nfd/Chart.yaml": "name: nfd\nversion: 0.19.0\n",
    "charts/nfd/values.yaml": "image: theirs\nworker: {config: {}}\n",
    "charts/nfd/crds/n.yaml": crd("n.example"),
}


def chart(**changes: str) -> ChartContent:
    files = {**FILES, **changes}
    return parse_chart({path: text.encode() for path, text in files.items()})


def names(values: dict[str, Any]) -> list[str]:
    return [found["metadata"]["name"] for found in chart().all_crds(values)]


def test_what_a_chart_says_of_itself() -> None:
    found = chart()
    assert (found.name, found.version, found.app_version) == ("stack", "1.2.3", "v0.9")


def test_subcharts_stand_below_their_names() -> None:
    known = chart().known_values()
    assert known["discovery"] == {"install": False, "image": "ours", "worker": {"config": {}}}
    assert known["second"] == {"install": False, "image": "theirs", "worker": {"config": {}}}
    assert known["crds"] == {"enabled": True}


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, ["a.example", "b.example", "c.example"]),
        ({"crds": {"enabled": False}}, ["a.example", "b.example"]),
        ({"discovery": {"install": True}}, ["a.example", "b.example", "c.example", "n.example"]),
        ({"discovery": {"install": None}, "other": {"path": True}},
         ["a.example", "b.example", "c.example", "n.example"]),
        ({"discovery": {"install": "yes"}, "other": {"path": False}},
         ["a.example", "b.example", "c.example"]),
    ],
)  # fmt: skip
def test_crds_of_subcharts_that_are_used(values: dict[str, Any], found: list[str]) -> None:
    assert names(values) == found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"Chart.yaml": "version: 1"}, "lacks name or version"),
        ({"Chart.yaml": "- a list"}, "lacks name or version"),
        ({"values.yaml": "a: [1"}, "values.yaml does not parse"),
        ({"crds/own.yaml": "a: b: c"}, "crds/own.yaml does not parse"),
        ({"crds/own.yaml": "kind: CustomResourceDefinition"}, "invalid structure"),
        ({"Chart.yaml": "name: a\nversion: 1\ndependencies: 7"}, "invalid structure"),
        ({"Chart.yaml": "name: a\nversion: 1\ndependencies: [x]"}, "invalid structure"),
    ],
)
def test_charts_that_are_broken(changes: dict[str, str], said: str) -> None:
    with pytest.raises(BrokenChart, match=said):
        chart(**changes)


def test_no_chart_at_all() -> None:
    with pytest.raises(BrokenChart, match=r"Chart\.yaml is missing"):
        parse_chart({"README.md": b""})


@given(st.dictionaries(st.sampled_from(list(FILES)), st.binary(max_size=60), min_size=1))
def test_any_content_is_a_chart_or_broken(damage: dict[str, bytes]) -> None:
    files = {path: text.encode() for path, text in FILES.items()}
    try:
        found = parse_chart({**files, **damage})
    except BrokenChart:
        return
    assert found.name
    assert list(found.all_crds({})) is not None
