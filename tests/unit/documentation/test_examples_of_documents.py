"""Inventories in documents are Python, and their settings and values of charts exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT, Block, blocks, documents
from pydantic import ValidationError

from gpufleet.core.settings import RoleSettings
from scripts.generate_docs import READMES
from scripts.reference_pages import examples, shown

CHARTS = {  # data key -> chart with those values
    "device_plugin_values": "nvidia-device-plugin",
    "device_plugin_nfd_values": "node-feature-discovery",
    "gpu_operator_values": "gpu-operator",
    "monitoring_values": "kube-prometheus-stack",
    "monitoring_exporter_values": "dcgm-exporter",
    "monitoring_adapter_values": "prometheus-adapter",
    "monitoring_node_problems_values": "node-problem-detector",
}
SUBCHARTS = ("grafana.",)  # a chart within a chart has values that the outer one does not list
FILES = ("kubernetes_image_archives",)  # validated only with the files that they name
INLINE = re.compile(r"`([a-z_]+) = ([^`]+)`")


def keys() -> dict[str, tuple[type[RoleSettings], str]]:
    """Data key -> model and field."""
    models = READMES.values()
    return {f"{m.prefix}{name}": (m, name) for m in models for name in m.model_fields}


def python_blocks() -> list[Block]:
    found = [block for page in documents() for block in blocks(page)]
    return [block for block in found if block.language == "python"]


def parsed(block: Block) -> ast.AST:
    """A block of statements, or of entries of a dictionary."""
    text = block.text
    return ast.parse("{" + text + "}" if text.startswith('"') else text)


def entries(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Keys and values of every dictionary within."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value


def refused(key: str, value: Any) -> str:
    """The error of the settings about a value, or an empty text if they accept it."""
    model, field = keys()[key]
    if key in FILES:
        return ""
    try:
        model(**{field: value})
    except ValidationError as error:
        return str(error)
    return ""


@cache
def paths(chart: str) -> frozenset[str]:
    """Paths of values of the real chart, in any version."""
    file = ROOT / f"tests/cluster/charts/fake/{chart}/keys.tsv"
    return frozenset(line.split("\t")[0] for line in file.read_text().splitlines())


def unknown(values: Mapping[str, Any], known: frozenset[str], above: str = "") -> list[str]:
    """Paths that no version of a chart has. Below an open path, every path is accepted."""
    found = []
    for name, value in values.items():
        path = f"{above}{name}"
        inside = any(each.startswith(f"{path}.") for each in known)
        if inside and isinstance(value, Mapping):
            found += unknown(value, known, f"{path}.")
        elif path not in known and not path.startswith(SUBCHARTS):
            found.append(path)
    return found


def literal(node: ast.expr) -> Any:
    """The value of a literal, or None if the expression is not a literal."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


@pytest.mark.parametrize("block", python_blocks(), ids=lambda block: block.page)
def test_settings_of_an_example_are_accepted(block: Block) -> None:
    prefixes = tuple(model.prefix for model in READMES.values() if model.reserved)
    for key, node in entries(parsed(block)):
        if key.startswith(prefixes):
            assert key in keys(), key
        value = literal(node)
        if key in keys() and value is not None:
            assert refused(key, value) == "", key
            if CHARTS.get(key):
                assert unknown(value, paths(CHARTS[key])) == [], key


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with the files that examples of keys name."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "site.yaml").write_text("groups: []\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("page", sorted(documents()))
def test_settings_within_a_sentence_are_accepted(page: str) -> None:
    for key, text in INLINE.findall(documents()[page]):
        if key in keys() and "…" not in text:
            assert refused(key, ast.literal_eval(text)) == "", f"{key} = {text}"


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("key", sorted(examples()))
def test_the_reference_has_valid_examples(key: str) -> None:
    assert key in keys(), "no such key"
    value = examples()[key]
    if value is not None:
        assert refused(key, value) == ""
        assert ast.literal_eval(shown(value)) == value
        model, field = keys()[key]
        default = model.model_fields[field].get_default(call_default_factory=True)
        assert value != default, "an example that changes nothing"
        if CHARTS.get(key):
            assert unknown(value, paths(CHARTS[key])) == []


def test_wrong_examples_are_seen() -> None:
    assert refused("driver_branch", "58")
    assert refused("driver_branch", "580") == ""
    assert unknown({"prometheus": {"retention": 1}}, paths("kube-prometheus-stack")) == [
        "prometheus.retention"
    ]
    tree = ast.parse('gpu_nodes = (["a"], {"driver_branch": "580"})')
    assert [key for key, _ in entries(tree)] == ["driver_branch"]
