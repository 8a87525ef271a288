"""What can stand in a release's way, on real control planes: told before anything is changed where
that can be, and told with its cause where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.core.versions import version_tuple
from gpufleet.helm.release import ChartSource, Readiness, Release
from gpufleet.kube.facts import ReleaseRef
from tests.cluster.tiny import Run, Site, archive

POD_SECURITY = "pod-security.kubernetes.io/enforce"


def untouched(place: Site, run: Run) -> None:
    """The run was refused by its plan, and nothing of the release is in the cluster."""
    assert (run.plan.action, run.outcome) == ("blocked", None)
    assert place.open().facts.release(place.namespace, "one") is None
    assert place.apps.list_namespaced_deployment(place.namespace).items == []


def test_a_kind_that_the_cluster_does_not_serve(place: Site) -> None:
    run = place.bring({"monitor": True})
    assert "ServiceMonitor (monitoring.coreos.com/v1)" in run.finding("GF843").message
    untouched(place, run)


def test_values_that_the_chart_refuses(place: Site) -> None:
    run = place.bring({"deployment": {"replicas": "many"}})
    assert "replicas" in run.finding("GF851").message
    untouched(place, run)


def test_a_chart_for_another_kubernetes(place: Site) -> None:
    run = place.bring({}, edit=lambda path, text: text.replace(">= 1.16.0-0", "< 1.16.0-0"))
    assert f"incompatible with Kubernetes v{place.cluster.version}" in run.finding("GF846").message
    untouched(place, run)


def test_a_value_that_the_chart_does_not_know(place: Site) -> None:
    run = place.bring({"deployment": {"replica": 3}, "global": {"any": 1}, "settings": {"x": 1}})
    assert run.ok
    found = run.finding("GF836")
    assert "deployment.replica " in found.message
    assert "Did you mean replicas?" in found.remedy


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00cut off"])
def test_an_archive_that_is_broken(place: Site, content: bytes) -> None:
    path = place.folder / "broken.tgz"
    path.write_bytes(content)
    run = place.bring({}, source=ChartSource("archive", str(path)))
    assert str(path) in run.finding("GF842").message
    untouched(place, run)


def test_an_archive_of_another_version(place: Site) -> None:
    run = place.bring({}, source=ChartSource("archive", archive(place.folder, "2.0.0")))
    assert "it contains tiny 2.0.0" in run.finding("GF842").message
    untouched(place, run)


@pytest.mark.parametrize(
    "source",
    [
        ChartSource("archive", "/nowhere/tiny-1.0.0.tgz"),
        ChartSource("repository", "http://127.0.0.1:9/charts"),
        ChartSource("oci", "oci://127.0.0.1:9/charts/tiny"),
    ],
    ids=lambda source: source.kind,
)
def test_a_chart_that_cannot_be_fetched(
    site: Site, source: ChartSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = site.bring({}, source=source)
    assert source.location in run.finding("GF841").message
    untouched(site, run)


def test_a_node_port_that_is_taken(place: Site) -> None:
    assert place.bring({"service": {"nodePort": 30190}}, name="first").ok
    run = place.bring({"service": {"nodePort": 30190}})
    assert f"which Service {place.namespace}/first uses" in run.finding("GF834").message
    assert (run.plan.action, run.outcome) == ("blocked", None)
    assert place.bring({"service": {"nodePort": 30190}}, name="first").plan.action == "no-op"


def test_a_name_that_another_chart_has(place: Site) -> None:
    assert place.bring({}).ok
    other = Release("one", place.namespace, "other", "1.0.0", ChartSource("archive", "/nowhere"))
    run = place.run(other)
    assert "is of chart tiny 1.0.0, not of other" in run.finding("GF830").message
    assert run.plan.action == "blocked"


def test_a_release_that_somebody_else_made(place: Site) -> None:
    """Its values are not lost, unless that is allowed."""
    assert place.bring({"settings": {"theirs": "kept"}, "deployment": {"replicas": 2}}).ok
    selector = "owner=helm,name=one"
    secret = place.core.list_namespaced_secret(place.namespace, label_selector=selector).items[0]
    place.core.patch_namespaced_secret(
        secret.metadata.name, place.namespace, {"metadata": {"labels": {"gpufleet": None}}}
    )
    run = place.bring({"deployment": {"replicas": 1}})
    message = run.finding("GF831").message
    assert "settings" in message
    assert "deployment.replicas" in message
    assert place.deployment().spec.replicas == 2
    wider = {"settings": {"theirs": "kept"}, "deployment": {"replicas": 2}, "password": "x"}
    assert place.bring(wider).ok  # nothing gets lost
    assert place.bring({}, adopt=True).ok


def test_an_older_chart_is_not_put_over_a_newer_one(place: Site) -> None:
    assert place.bring({}, "1.1.0").ok
    run = place.bring({"deployment": {"replicas": 2}}, "1.0.0")
    assert (run.plan.action, run.finding("GF859").severity.value) == ("no-op", "warning")
    down = place.bring({"deployment": {"replicas": 2}}, "1.0.0", downgrade=True)
    assert down.ok
    assert down.plan.action == "upgrade"
    assert place.deployment().spec.replicas == 2


def test_a_daemonset_without_pods_names_the_label(place: Site) -> None:
    values = {"daemonset": {"enabled": True, "nodeSelector": {"nvidia.com/mps.capable": "true"}}}
    ready = Readiness(pods={"one": 3}, timeout=3)
    run = place.bring(values, ready=ready)
    message = run.finding("GF847").message
    assert "0 desired pods, expected 3" in message
    assert "none of the 3 nodes has the label nvidia.com/mps.capable=true" in message
    waits = place.bring(values, ready=Readiness(pods={"one": 3}, timeout=1))
    assert waits.plan.action == "wait"
    warned = place.bring(values)  # nothing is expected of it
    assert warned.plan.action == "no-op"
    assert "nvidia.com/mps.capable=true" in warned.finding("GF838").message
    silent = place.bring(values, ready=Readiness(pods={"one": 0}))
    assert silent.findings == []


def test_a_daemonset_on_fewer_nodes_than_expected(place: Site) -> None:
    values = {"daemonset": {"enabled": True, "nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}}
    run = place.bring(values, ready=Readiness(pods={"one": 3}, timeout=3))
    assert "1 desired pods, expected 3" in run.finding("GF847").message


def test_a_namespace_that_is_strict(place: Site) -> None:
    if version_tuple(place.cluster.version) < (1, 23):
        pytest.skip(f"Kubernetes {place.cluster.version} has no pod security admission")
    label = {"metadata": {"labels": {POD_SECURITY: "restricted"}}}
    place.core.patch_namespace(place.namespace, label)
    values = {"daemonset": {"enabled": True, "hostPort": 9400}}
    run = place.bring(values)
    assert "enforces pod security level restricted" in run.finding("GF835").message
    untouched(place, run)
    place.core.patch_namespace(place.namespace, {"metadata": {"labels": {POD_SECURITY: None}}})


@pytest.fixture
def fresh(place: Site) -> Iterator[Site]:
    """A site whose namespace does not exist yet."""
    place.namespace = f"{place.namespace}-made"
    yield place
    place.core.delete_namespace(place.namespace)


def test_a_namespace_is_made_with_the_level_that_is_needed(fresh: Site) -> None:
    assert fresh.bring({}).ok
    labels = fresh.core.read_namespace(fresh.namespace).metadata.labels
    assert labels[POD_SECURITY] == "privileged"
    ref = ReleaseRef(fresh.namespace, "one")
    assert [work.name for work in fresh.open().facts.workloads_of(ref)] == ["one"]


def test_a_namespace_that_is_being_deleted(place: Site) -> None:
    core = place.core
    finalized = {"metadata": {"name": "kept", "finalizers": ["example.com/wait"]}}
    core.create_namespaced_config_map(place.namespace, finalized)
    core.delete_namespace(place.namespace)
    run = place.bring({})
    assert place.namespace in run.finding("GF833").message
    gone = {"metadata": {"finalizers": None}}
    core.patch_namespaced_config_map("kept", place.namespace, gone)
