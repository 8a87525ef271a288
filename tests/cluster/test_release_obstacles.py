"""Obstacles to a release on real control planes: reported before any change where possible, and
otherwise with the cause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.core.versions import version_tuple
from gpufleet.helm.release import ChartSource, Readiness, Release
from gpufleet.kube.facts import ReleaseRef
from tests.cluster.tiny import Run, Site, archive

pytestmark = pytest.mark.claim("Obstacles to a release are reported before any change.", level=5)

POD_SECURITY = "pod-security.kubernetes.io/enforce"
NODES = ("gpu-1", "gpu-2", "gpu-3")


def untouched(place: Site, run: Run) -> None:
    """Assert that the plan refuses the run, and that nothing of the release is in the cluster."""
    assert (run.plan.action, run.outcome) == ("blocked", None)
    assert place.open().facts.release(place.namespace, "one") is None
    assert place.apps.list_namespaced_deployment(place.namespace).items == []


def test_a_kind_that_the_cluster_does_not_serve(place: Site) -> None:
    run = place.apply({"monitor": True})
    assert "ServiceMonitor (monitoring.coreos.com/v1)" in run.finding("GF843").message
    untouched(place, run)


def test_values_that_the_chart_rejects(place: Site) -> None:
    run = place.apply({"deployment": {"replicas": "many"}})
    assert "replicas" in run.finding("GF851").message
    untouched(place, run)


@pytest.mark.extended
def test_a_chart_for_another_kubernetes(place: Site) -> None:
    run = place.apply({}, edit=lambda path, text: text.replace(">= 1.16.0-0", "< 1.16.0-0"))
    assert f"incompatible with Kubernetes v{place.cluster.version}" in run.finding("GF844").message
    untouched(place, run)


@pytest.mark.extended
def test_a_value_unknown_to_the_chart(place: Site) -> None:
    run = place.apply({"deployment": {"replica": 3}, "global": {"any": 1}, "settings": {"x": 1}})
    assert run.ok
    found = run.finding("GF836")
    assert "deployment.replica " in found.message
    assert "Did you mean deployment.replicas?" in found.remedy


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00cut off"])
def test_a_broken_archive(place: Site, content: bytes) -> None:
    path = place.folder / "broken.tgz"
    path.write_bytes(content)
    run = place.apply({}, source=ChartSource("archive", str(path)))
    assert str(path) in run.finding("GF842").message
    untouched(place, run)


@pytest.mark.extended
def test_an_archive_of_another_version(place: Site) -> None:
    run = place.apply({}, source=ChartSource("archive", archive(place.folder, "2.0.0")))
    assert "it contains tiny 2.0.0" in run.finding("GF842").message
    untouched(place, run)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (ChartSource("archive", "/nowhere/tiny-1.0.0.tgz"), "GF815"),
        (ChartSource("repository", "http://127.0.0.1:9/charts"), "GF841"),
        (ChartSource("oci", "oci://127.0.0.1:9/charts/tiny"), "GF841"),
    ],
    ids=["archive", "repository", "oci"],
)
def test_a_chart_that_cannot_be_downloaded(
    site: Site, source: ChartSource, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = site.apply({}, source=source)
    assert source.location in run.finding(code).message
    untouched(site, run)


def test_a_node_port_in_use(place: Site) -> None:
    assert place.apply({"service": {"nodePort": 30190}}, name="first").ok
    run = place.apply({"service": {"nodePort": 30190}})
    assert f"which Service {place.namespace}/first uses" in run.finding("GF834").message
    assert (run.plan.action, run.outcome) == ("blocked", None)
    assert place.apply({"service": {"nodePort": 30190}}, name="first").plan.action == "no-op"


@pytest.mark.extended
def test_a_name_in_use_by_another_chart(place: Site) -> None:
    assert place.apply({}).ok
    other = Release("one", place.namespace, "other", "1.0.0", ChartSource("archive", "/nowhere"))
    run = place.run(other)
    assert "is of chart tiny 1.0.0, not of other" in run.finding("GF830").message
    assert run.plan.action == "blocked"


def test_a_release_of_another_user(place: Site) -> None:
    """It is not changed, unless the user allows it."""
    assert place.apply({"settings": {"theirs": "kept"}, "deployment": {"replicas": 2}}).ok
    selector = "owner=helm,name=one"
    secret = place.core.list_namespaced_secret(place.namespace, label_selector=selector).items[0]
    place.core.patch_namespaced_secret(
        secret.metadata.name, place.namespace, {"metadata": {"labels": {"gpufleet": None}}}
    )
    run = place.apply({"deployment": {"replicas": 1}})
    message = run.finding("GF831").message
    assert "settings" in message
    assert "deployment.replicas" in message
    assert place.deployment().spec.replicas == 2
    wider = {"settings": {"theirs": "kept"}, "deployment": {"replicas": 2}, "password": "x"}
    assert place.apply(wider).finding("GF831").blocks, "no value would be lost"
    assert place.apply({}, adopt=True).ok


@pytest.mark.extended
def test_an_older_chart_does_not_replace_a_newer_one(place: Site) -> None:
    assert place.apply({}, "1.1.0").ok
    run = place.apply({"deployment": {"replicas": 2}}, "1.0.0")
    assert (run.plan.action, run.finding("GF859").severity.value) == ("no-op", "warning")
    down = place.apply({"deployment": {"replicas": 2}}, "1.0.0", downgrade=True)
    assert down.ok
    assert down.plan.action == "upgrade"
    assert place.deployment().spec.replicas == 2


def test_a_daemonset_without_pods_names_the_label(place: Site) -> None:
    values = {"daemonset": {"enabled": True, "nodeSelector": {"nvidia.com/mps.capable": "true"}}}
    missing = "none of the 3 nodes has the label nvidia.com/mps.capable=true"
    run = place.apply(values, ready=Readiness({"one": NODES}, timeout=3))
    assert missing in run.finding("GF838").message
    untouched(place, run)
    soon = {"nvidia.com/mps.capable": "true"}  # by something that this run installs
    run = place.apply(values, ready=Readiness({"one": NODES}, timeout=3, labels=soon))
    assert f"0 desired pods, expected 3: {missing}" in run.finding("GF847").message
    waits = place.apply(values, ready=Readiness({"one": NODES}, timeout=1))
    assert waits.plan.action == "wait"
    warned = place.apply(values)  # no number of pods is expected
    assert warned.plan.action == "no-op"
    assert "nvidia.com/mps.capable=true" in warned.finding("GF838").message
    silent = place.apply(values, ready=Readiness({"one": ()}))
    assert silent.findings == []


@pytest.mark.extended
def test_a_daemonset_that_its_selector_keeps_off_nodes(place: Site) -> None:
    values = {"daemonset": {"enabled": True, "nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}}
    run = place.apply(values, ready=Readiness({"one": NODES}, timeout=3))
    assert run.ok
    message = run.finding("GF809").message
    assert "gpu-2 (it does not have the label kubernetes.io/hostname=gpu-1), gpu-3 (" in message


@pytest.mark.extended
def test_a_namespace_with_restricted_pod_security(place: Site) -> None:
    if version_tuple(place.cluster.version) < (1, 23):
        pytest.skip(f"Kubernetes {place.cluster.version} has no pod security admission")
    label = {"metadata": {"labels": {POD_SECURITY: "restricted"}}}
    place.core.patch_namespace(place.namespace, label)
    values = {"daemonset": {"enabled": True, "hostPort": 9400}}
    run = place.apply(values)
    assert "enforces pod security level restricted" in run.finding("GF835").message
    untouched(place, run)
    place.core.patch_namespace(place.namespace, {"metadata": {"labels": {POD_SECURITY: None}}})


@pytest.fixture
def fresh(place: Site) -> Iterator[Site]:
    """A site whose namespace does not exist yet."""
    place.namespace = f"{place.namespace}-made"
    yield place
    place.core.delete_namespace(place.namespace)


def test_a_namespace_is_created_with_the_required_level(fresh: Site) -> None:
    assert fresh.apply({}).ok
    labels = fresh.core.read_namespace(fresh.namespace).metadata.labels
    assert labels[POD_SECURITY] == "privileged"
    ref = ReleaseRef(fresh.namespace, "one")
    assert [work.name for work in fresh.open().facts.workloads_of(ref)] == ["one"]


def test_a_namespace_that_is_being_deleted(place: Site) -> None:
    core = place.core
    finalized = {"metadata": {"name": "kept", "finalizers": ["example.com/wait"]}}
    core.create_namespaced_config_map(place.namespace, finalized)
    core.delete_namespace(place.namespace)
    run = place.apply({})
    assert place.namespace in run.finding("GF833").message
    gone = {"metadata": {"finalizers": None}}
    core.patch_namespaced_config_map("kept", place.namespace, gone)
