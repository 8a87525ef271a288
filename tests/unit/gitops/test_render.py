"""`gpufleet render` writes what a plan would give to helm and to the API, as files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gpufleet.cli import deploy
from gpufleet.core.secrets import register_secret, register_secrets_of
from gpufleet.gitops.yaml_text import FILE_MARK
from gpufleet.kube.facts import Namespace
from gpufleet.verify.inventory import Target
from tests.selection import EXTENDED, some
from tests.unit.gitops.rendering import clusters_of, documents_in, files_in, render_saved
from tests.unit.gpu_stack.gpu_clusters import FACTS, OLD, stack

pytestmark = pytest.mark.claim(
    "`gpufleet render` writes the values and objects of the plan, in a stable order, "
    "without secrets.",
    level=1,
)
SCHEMAS = yaml.safe_load((Path(__file__).parent / "schemas.yaml").read_text())
OCI = {"cluster_chart_repository": "oci://registry.example.com/charts"}
STYLES = ("values", "flux", "argocd")
Inventory = Callable[..., list[Target]]


@pytest.fixture(autouse=True)
def inventory(monkeypatch: pytest.MonkeyPatch) -> Inventory:
    """`inventory(name={key: value})`: the clusters of inv.py. At first it has the cluster lab."""

    def loads(**data: dict[str, Any]) -> list[Target]:
        targets = clusters_of(**data)
        monkeypatch.setattr(deploy, "load_targets", lambda path: targets)
        return targets

    loads(lab={})
    return loads


def values_of(style: str, name: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The release and its values, if a document has them."""
    if style == "values":
        folder, _, file = name.rpartition("/")
        return (folder.rpartition("/")[2], body) if file == "values.yaml" else None
    if body["kind"] == "HelmRelease":
        return body["spec"]["releaseName"], body["spec"]["values"]
    if body["kind"] == "Application":
        helm = body["spec"]["source"]["helm"]
        return helm["releaseName"], helm["valuesObject"]
    return None


@pytest.mark.parametrize("style", some(STYLES, ["values", "flux"]))
@pytest.mark.parametrize(
    "data",
    [
        {},
        pytest.param({"cluster_stack": "gpu-operator"}, marks=EXTENDED),
        {"monitoring_autoscaling": True, "monitoring_node_problems": True},
        {"monitoring_values": {"grafana": {"ingress": {"hosts": ["y", "1e5"], "enabled": True}}}},
    ],
)
def test_the_values_are_those_of_the_plan(
    style: str, data: dict[str, Any], inventory: Inventory, tmp_path: Path
) -> None:
    inventory(lab=data)
    assert render_saved(tmp_path, {"lab": FACTS}, "--format", style).exit_code == 0
    documents = documents_in(tmp_path / "out/lab")
    found = dict(filter(None, (values_of(style, name, body) for name, body in documents)))
    assert found == {
        release.name: dict(release.values) for release in stack(FACTS, **data).releases
    }


def test_texts_that_go_reads_as_numbers_or_booleans_are_quoted(
    inventory: Inventory, tmp_path: Path
) -> None:
    texts = ["1e5", "y", "0o7", "3d", "1.10"]
    inventory(lab={"monitoring_values": {"grafana": {"ingress": {"hosts": texts}}}})
    render_saved(tmp_path, {"lab": FACTS})
    text = (tmp_path / "out/lab/releases/kube-prometheus-stack/values.yaml").read_text()
    assert [one for one in texts if f"- '{one}'\n" not in text] == []


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("data", [{}, OCI, {**OCI, "cluster_chart_plain_http": True}])
def test_every_object_has_the_fields_of_its_kind(
    style: str, data: dict[str, Any], inventory: Inventory, tmp_path: Path
) -> None:
    inventory(lab=data)
    render_saved(tmp_path, {"lab": FACTS}, "--format", style)
    kinds = set()
    for name, body in documents_in(tmp_path / "out/lab"):
        if not name.endswith("values.yaml"):
            known = SCHEMAS[body["kind"]]
            kinds.add(body["kind"])
            assert body["apiVersion"] == known["apiVersion"]
            jsonschema.validate(body.get("spec", {}), known.get("spec", {}))
    source = {"flux": "OCIRepository" if data else "HelmRepository", "argocd": "Application"}
    assert {"ConfigMap", "PrometheusRule", "Namespace", source.get(style, "ConfigMap")} <= kinds


def test_the_objects_are_those_of_the_plan(tmp_path: Path) -> None:
    render_saved(tmp_path, {"lab": FACTS})
    plan = stack(FACTS)
    wanted = [*plan.alerts.labelled().values(), *plan.dashboards.labelled().values()]
    found = [body for _, body in documents_in(tmp_path / "out/lab/objects")]
    named = {body["metadata"]["name"]: body for body in found if "metadata" in body}
    assert named == {body["metadata"]["name"]: body for body in wanted}


@pytest.mark.parametrize("style", STYLES)
def test_a_second_run_changes_no_byte_and_writes_no_file(style: str, tmp_path: Path) -> None:
    render_saved(tmp_path, {"lab": FACTS}, "--format", style)
    before = files_in(tmp_path / "out")
    for name in before:
        os.utime(tmp_path / "out" / name, (1, 1))
    done = render_saved(tmp_path, {"lab": FACTS}, "--format", style)
    assert files_in(tmp_path / "out") == before
    assert {(tmp_path / "out" / name).stat().st_mtime for name in before} == {1}
    assert "0 changed" in done.output


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b", "a\n  b\n\n", "\U0001f600 \x07"])
def test_a_text_is_read_back_as_it_was(text: str, inventory: Inventory, tmp_path: Path) -> None:
    inventory(lab={"monitoring_values": {"grafana": {"ingress": {"hosts": [text]}}}})
    assert render_saved(tmp_path, {"lab": FACTS}).exit_code == 0
    path = tmp_path / "out/lab/releases/kube-prometheus-stack/values.yaml"
    assert yaml.safe_load(path.read_text("utf-8"))["grafana"]["ingress"]["hosts"] == [text]


def test_files_of_a_release_that_went_are_deleted_and_others_stay(
    inventory: Inventory, tmp_path: Path
) -> None:
    render_saved(tmp_path, {"lab": FACTS}, "--format", "flux")
    mine = tmp_path / "out/lab/patch.yaml"
    mine.write_text("kind: Patch\n")
    inventory(lab={"monitoring_enabled": False})
    render_saved(tmp_path, {"lab": FACTS}, "--format", "flux")
    assert not (tmp_path / "out/lab/releases/dcgm-exporter.yaml").exists()
    assert not (tmp_path / "out/lab/objects/kustomization.yaml").exists()
    assert mine.exists()


def test_a_file_that_mentions_the_mark_below_its_first_line_stays(tmp_path: Path) -> None:
    mine = tmp_path / "out/lab/mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text(f"# my patch for:\n# {FILE_MARK}\nkind: Patch\n")
    render_saved(tmp_path, {"lab": FACTS})
    assert mine.exists()


def test_flux_gets_the_tag_that_helm_pushes(inventory: Inventory, tmp_path: Path) -> None:
    """A tag has no +: helm writes _ instead."""
    inventory(lab={**OCI, "cluster_chart_versions": {"dcgm-exporter": "4.8.2+x1"}})
    assert render_saved(tmp_path, {"lab": FACTS}, "--format", "flux").exit_code == 0
    text = (tmp_path / "out/lab/releases/dcgm-exporter.yaml").read_text()
    source, _ = yaml.safe_load_all(text)
    assert source["spec"]["ref"]["tag"] == "4.8.2_x1"


def test_a_file_of_others_is_not_overwritten(tmp_path: Path) -> None:
    theirs = tmp_path / "out/lab/README.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine\n")
    done = render_saved(tmp_path, {"lab": FACTS})
    assert (done.exit_code, "GF983" in done.output) == (1, True)
    assert files_in(tmp_path / "out") == {"lab/README.md": "mine\n"}


@pytest.mark.parametrize("style", STYLES)
def test_a_secret_in_the_values_blocks_its_cluster_alone(
    style: str, inventory: Inventory, tmp_path: Path
) -> None:
    secret = "correct-horse-battery"
    bad = {"monitoring_values": {"grafana": {"adminPassword": secret}}}
    inventory(bad=bad, good={})
    done = render_saved(tmp_path, {"bad": FACTS, "good": FACTS}, "--format", style)
    assert done.exit_code == 1
    assert "GF981" in done.output
    assert "grafana.adminPassword" in done.output
    assert {name.split("/")[0] for name in files_in(tmp_path / "out")} == {"good"}
    assert secret not in done.output + "".join(files_in(tmp_path).values())


def test_a_registered_secret_is_in_no_file(inventory: Inventory, tmp_path: Path) -> None:
    register_secret("planted-token-0123456789")
    labels = {"monitoring_rule_labels": {"team": "planted-token-0123456789"}}
    inventory(lab=labels)
    done = render_saved(tmp_path, {"lab": FACTS})
    assert (done.exit_code, files_in(tmp_path / "out")) == (1, {})
    assert "planted-token" not in done.output


@pytest.mark.parametrize(
    "grafana",
    [{"adminPassword": "abcd"}, {"extraEnv": [{"name": "API_TOKEN", "value": "xyz"}]}],
)
def test_a_short_secret_is_in_no_file(
    grafana: dict[str, Any], inventory: Inventory, tmp_path: Path
) -> None:
    inventory(lab={"monitoring_values": {"grafana": grafana}})
    done = render_saved(tmp_path, {"lab": FACTS})
    assert (done.exit_code, files_in(tmp_path / "out")) == (1, {})
    (key,) = grafana
    assert f"grafana.{key}" in done.output


def test_a_short_secret_in_a_tuple_is_in_no_file(inventory: Inventory, tmp_path: Path) -> None:
    inventory(lab={"monitoring_values": {"grafana": {"tokens": ("a1", "b1"), "auth": "none"}}})
    done = render_saved(tmp_path, {"lab": FACTS})
    assert (done.exit_code, files_in(tmp_path / "out")) == (1, {})
    assert "grafana.tokens[1]" in done.output
    assert "grafana.auth" not in done.output


def test_keys_with_the_text_of_a_secret_are_none(inventory: Inventory, tmp_path: Path) -> None:
    register_secret("admin")
    inventory(lab={"monitoring_values": {"grafana": {"admin": {"x": "y"}}}})
    done = render_saved(tmp_path, {"lab": FACTS})
    assert "grafana.admin.x" not in done.output.replace("***", "admin")


def test_addresses_of_tokens_are_rendered(inventory: Inventory, tmp_path: Path) -> None:
    login = {"auth.generic_oauth": {"token_url": "https://idp.example.com/token"}}
    values = {"grafana": {"grafana.ini": login}}
    register_secrets_of({"monitoring_values": values})
    inventory(lab={"monitoring_values": values})
    done = render_saved(tmp_path, {"lab": FACTS})
    assert done.exit_code == 0, done.output


def test_a_reference_to_a_secret_is_rendered(inventory: Inventory, tmp_path: Path) -> None:
    login = {
        "username": {"name": "remote-write", "key": "username"},
        "password": {"name": "remote-write", "key": "password"},
    }
    write = [{"url": "https://metrics.example.com/api/v1/write", "basicAuth": login}]
    inventory(lab={"monitoring_values": {"prometheus": {"prometheusSpec": {"remoteWrite": write}}}})
    done = render_saved(tmp_path, {"lab": FACTS})
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out/lab/releases/kube-prometheus-stack/values.yaml").read_text()
    spec = yaml.safe_load(text)["prometheus"]["prometheusSpec"]
    assert spec["remoteWrite"][0]["basicAuth"] == login


def test_the_index_names_the_secrets_to_create(tmp_path: Path) -> None:
    done = render_saved(tmp_path, {"lab": FACTS})
    assert "GF984" in done.output
    index = (tmp_path / "out/lab/README.md").read_text()
    assert "| monitoring/gpufleet-grafana | admin-user, admin-password |" in index


@pytest.mark.parametrize(("style", "code"), [("values", 0), ("flux", 1), ("argocd", 1)])
def test_a_folder_of_charts_is_no_source_for_a_cluster(
    style: str, code: int, inventory: Inventory, tmp_path: Path
) -> None:
    inventory(lab={"cluster_chart_dir": "/srv/charts"})
    done = render_saved(tmp_path, {"lab": FACTS}, "--format", style)
    assert (done.exit_code, "GF982" in done.output) == (code, bool(code))


def test_no_namespace_is_pruned_with_all_that_is_in_it(tmp_path: Path) -> None:
    assert render_saved(tmp_path, {"lab": FACTS}).exit_code == 0
    spaces = [body for _, body in documents_in(tmp_path / "out") if body.get("kind") == "Namespace"]
    assert spaces
    for body in spaces:
        assert body["metadata"]["annotations"] == {
            "kustomize.toolkit.fluxcd.io/prune": "disabled",
            "argocd.argoproj.io/sync-options": "Prune=false",
        }


def test_a_namespace_of_others_is_not_rendered(tmp_path: Path) -> None:
    theirs = {"monitoring": Namespace("monitoring")}
    render_saved(tmp_path, {"lab": replace(FACTS, namespaces=theirs)})
    assert prerequisites(tmp_path) == {("Namespace", "node-feature-discovery")}


def prerequisites(folder: Path) -> set[tuple[str, str]]:
    text = (folder / "out/lab/releases/prerequisites.yaml").read_text()
    return {(body["kind"], body["metadata"]["name"]) for body in yaml.safe_load_all(text)}


def test_what_pods_need_is_beside_the_releases(inventory: Inventory, tmp_path: Path) -> None:
    mounts = {"extraVolumeMounts": [{"name": "mine", "mountPath": "/mine"}]}
    data = {"device_plugin_runtime_class": "nvidia", "monitoring_exporter_values": mounts}
    inventory(lab=data)
    render_saved(tmp_path, {"lab": FACTS})
    (counters,) = stack(FACTS, **data).counters.objects
    assert prerequisites(tmp_path) == {
        *(("Namespace", name) for name in ("monitoring", "node-feature-discovery")),
        ("RuntimeClass", "nvidia"),
        ("ConfigMap", counters["metadata"]["name"]),
    }


def test_nodes_to_label_are_named(inventory: Inventory, tmp_path: Path) -> None:
    bare = replace(FACTS, nodes=tuple(replace(node, labels={}) for node in FACTS.nodes))
    inventory(lab={"device_plugin_label_nodes": True})
    done = render_saved(tmp_path, {"lab": bare})
    assert "GF985" in done.output
    assert "gpu-2 (" in done.output


def test_findings_are_those_of_the_plan(tmp_path: Path) -> None:
    done = render_saved(tmp_path, {"lab": replace(OLD, nodes=())})
    codes = {found.code for found in stack(replace(OLD, nodes=())).findings}
    assert codes
    assert [code for code in codes if code not in done.output] == []


def test_a_cluster_without_saved_facts_is_blocked(inventory: Inventory, tmp_path: Path) -> None:
    inventory(lab={}, other={})
    done = render_saved(tmp_path, {"lab": FACTS})
    assert (done.exit_code, "GF986" in done.output) == (1, True)
    assert (tmp_path / "out/lab").exists()
    assert not (tmp_path / "out/other").exists()
