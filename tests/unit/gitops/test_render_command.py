"""The command line of `gpufleet render`: clusters that it reads, facts files, statuses."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import deploy, main
from gpufleet.gitops.facts_file import FactsFileError, facts_text, parse_facts
from gpufleet.gpu_stack.operations import accesses
from gpufleet.helm.findings.releases import KIND_MISSING
from gpufleet.helm.plan import Controller, plan_release
from gpufleet.helm.release import HelmVersion, Release
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.answers import cluster_facts
from gpufleet.kube.facts import (
    ClusterFacts,
    ClusterPolicy,
    ObjectRef,
    PrometheusInstance,
    ReleaseRef,
)
from gpufleet.kube.findings import SERVER_TOO_OLD
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.verify.inventory import Target
from tests.unit.gitops.rendering import clusters_of, files_in, render_saved
from tests.unit.gpu_stack.gpu_clusters import FACTS, named

CAPTURES = sorted((Path(__file__).parents[1] / "kube/captures").glob("cluster-*.answers.json"))
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def inventory(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`inventory(name={key: value})`: the targets of inv.py."""

    def loads(*hosts: Target, **data: dict[str, Any]) -> None:
        targets = [*hosts, *clusters_of(**data)]
        monkeypatch.setattr(deploy, "load_targets", lambda path: targets)

    loads(lab={}, prod={})
    return loads


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> dict[str, ClusterFacts]:
    """The clusters that answer: name -> facts."""
    found: dict[str, ClusterFacts] = {"lab": FACTS}

    def opens(name: str, *how: Any, **more: Any) -> Any:
        assert more["wait"] is None, "a cluster was locked"
        if name not in found:
            raise ClusterProblem(SERVER_TOO_OLD(version="1.10", oldest="1.16"))
        facts, me = found[name], Controller("me", 0, HelmVersion(3, 19))

        def plan(release: Release) -> Any:
            planned = plan_release(release, facts, me, helm_catalog())
            missing = KIND_MISSING(release=release.ref, kind="Thing", version="v1")
            notes = (missing,) if name == "odd" else ()
            return replace(planned, findings=(*planned.findings, *notes))

        return SimpleNamespace(facts=facts, plan=plan)

    monkeypatch.setattr(accesses, "open_cluster", opens)
    return found


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["render", "inv.py", *words])


def test_one_cluster_that_does_not_answer_stops_no_other(
    reached: dict[str, ClusterFacts], tmp_path: Path
) -> None:
    done = run("--output", str(tmp_path))
    assert (done.exit_code, "prod" in done.output) == (1, True)
    assert {name.split("/")[0] for name in files_in(tmp_path)} == {"lab"}
    assert run("--output", str(tmp_path), "--limit", "lab").exit_code == 0


def test_what_the_chart_shows_blocks_a_cluster(
    reached: dict[str, ClusterFacts], inventory: Callable[..., None], tmp_path: Path
) -> None:
    reached["odd"] = FACTS
    inventory(odd={})
    done = run("--output", str(tmp_path))
    assert (done.exit_code, KIND_MISSING.code in done.output) == (1, True)
    assert files_in(tmp_path) == {}


def test_wrong_settings_block_a_cluster(
    inventory: Callable[..., None], reached: dict[str, ClusterFacts], tmp_path: Path
) -> None:
    inventory(lab={"monitoring_namespaec": "x"})
    done = run("--output", str(tmp_path))
    assert (done.exit_code, "monitoring_namespace" in done.output) == (1, True)


def test_saved_facts_render_the_same_files(
    reached: dict[str, ClusterFacts], tmp_path: Path
) -> None:
    facts, online, offline = (str(tmp_path / name) for name in ("facts.json", "on", "off"))
    assert run("--limit", "lab", "--output", online, "--save-facts", facts).exit_code == 0
    assert stat.S_IMODE(Path(facts).stat().st_mode) == 0o600
    reached.clear()
    assert run("--limit", "lab", "--output", offline, "--offline", facts).exit_code == 0
    assert files_in(Path(online)) == files_in(Path(offline))


def test_facts_alone_are_saved_without_a_plan(
    reached: dict[str, ClusterFacts], tmp_path: Path
) -> None:
    facts = tmp_path / "facts.json"
    done = run("--save-facts", str(facts))
    assert done.exit_code == 1, "prod did not answer"
    assert list(parse_facts(facts.read_text())) == ["lab"]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_facts_survive_the_file(path: Path) -> None:
    facts = cluster_facts("sandbox", json.loads(path.read_text()))
    odd = replace(
        facts,
        unreadable={ReleaseRef("a", "b"): "it is broken"},
        operated={
            ObjectRef("Prometheus", "a", "b"): "paused",
            ObjectRef("Alertmanager", "", "c"): "",
        },
    )
    assert parse_facts(facts_text({"@local": odd, "x": facts})) == {"@local": odd, "x": facts}


def test_a_facts_file_holds_no_secret() -> None:
    secret = "hunter2-hunter2"
    values = {"grafana": {"adminPassword": secret, "env": [{"name": "API_TOKEN", "value": secret}]}}
    spec = {"remoteWrite": [{"bearerToken": secret, "url": "https://m.example.com"}]}
    release = replace(named("kube-prometheus-stack", "monitoring", {}), values=values)
    prometheus = PrometheusInstance("monitoring", "main", spec)
    policy = ClusterPolicy("p", "ready", {"driver": {"env": values["grafana"]["env"]}}, None)
    facts = replace(
        FACTS, releases=(release,), prometheuses=(prometheus,), cluster_policies=(policy,)
    )
    text = facts_text({"lab": facts})
    assert secret not in text
    assert "https://m.example.com" in text


def test_a_facts_file_holds_no_secret_in_numbers_and_arguments() -> None:
    values = {
        "grafana": {"adminPassword": 73519284, "proxy": "http://bob:hunter2pw@proxy:3128"},
        "extraArgs": ["--api-token=hunter3pw", "--v=2"],
    }
    release = replace(named("kube-prometheus-stack", "monitoring", {}), values=values)
    text = facts_text({"lab": replace(FACTS, releases=(release,))})
    assert [one for one in ("73519284", "hunter2pw", "hunter3pw") if one in text] == []
    assert "--v=2" in text


def test_a_reference_to_a_secret_stays_in_a_facts_file() -> None:
    values = {"tls": {"bearerTokenSecret": {"name": "login", "key": "token"}}}
    release = replace(named("kube-prometheus-stack", "monitoring", {}), values=values)
    facts = replace(FACTS, releases=(release,))
    assert parse_facts(facts_text({"lab": facts}))["lab"].releases[0].values == values


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"gpufleet_facts": 2, "clusters": {}}', '{"gpufleet_facts": 1}',
     '{"gpufleet_facts": 1, "clusters": {"lab": {}}}', "[" * 100_000],
)  # fmt: skip
def test_another_file_is_no_facts_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(FactsFileError):
        parse_facts(text)
    file = tmp_path / "facts.json"
    file.write_text(text)
    done = run("--output", str(tmp_path / "out"), "--offline", str(file))
    assert (done.exit_code, "--save-facts" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "words",
    [[], ["--output", "out", "--format", "helm"], ["--output", "x", "--offline", "/none"],
     ["--save-facts", "/proc/none/x"]],
)  # fmt: skip
def test_wrong_usage(words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_an_inventory_without_clusters_is_wrong_usage(
    inventory: Callable[..., None], tmp_path: Path
) -> None:
    inventory(Target("gpu-1", ("gpu_nodes",), {}))
    done = run("--output", str(tmp_path))
    assert (done.exit_code, "gpu_cluster" in done.stderr) == (2, True)


def test_clusters_need_folders_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    targets = [Target(name, ("gpu_cluster",), {}) for name in ("@local", "local")]
    monkeypatch.setattr(deploy, "load_targets", lambda path: targets)
    assert run("--output", str(tmp_path)).exit_code == 2
    monkeypatch.setattr(deploy, "load_targets", lambda path: targets[:1])
    assert render_saved(tmp_path, {"@local": FACTS}).exit_code == 0
    assert (tmp_path / "out/local/README.md").exists()


def test_quiet_prints_nothing_if_nothing_changes(tmp_path: Path) -> None:
    first = render_saved(tmp_path, {"lab": FACTS, "prod": FACTS}, "-q")
    assert (first.exit_code, "lab: " in first.output) == (0, True)
    second = render_saved(tmp_path, {"lab": FACTS, "prod": FACTS}, "-q")
    assert (second.exit_code, second.output) == (0, "")


def test_nodes_of_the_inventory_count(inventory: Callable[..., None], tmp_path: Path) -> None:
    bare = replace(
        FACTS, nodes=tuple(replace(node, labels={}, capacity={}) for node in FACTS.nodes)
    )
    inventory(
        Target("gpu-1.example.com", ("gpu_nodes",), {}), lab={"device_plugin_label_nodes": True}
    )
    done = render_saved(tmp_path, {"lab": bare})
    assert "To set: gpu-1 (" in " ".join(done.output.split())


def test_labels_of_shared_gpus_are_named(inventory: Callable[..., None], tmp_path: Path) -> None:
    shared = {"gpu_sharing": "time-slicing", "gpu_replicas": 4}
    inventory(Target("gpu-1.example.com", ("gpu_nodes",), shared), lab={})
    done = render_saved(tmp_path, {"lab": FACTS})
    said = " ".join(done.output.split())
    label = "nvidia.com/device-plugin.config=time-slicing-4"
    assert ("GF985" in said, f"gpu-1 ({label} gpufleet/dra-driver-)" in said) == (
        True,
        True,
    )
    files = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any("time-slicing-4:" in text for text in files)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file\n")
    done = render_saved(tmp_path, {"lab": FACTS, "prod": FACTS})
    assert (done.exit_code, "GF987" in done.output) == (1, True)
