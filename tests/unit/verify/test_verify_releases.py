"""Chart versions in a cluster, compared with those in the inventory's data."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.gpu_stack.model import our_releases
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.verify.releases import MAX_RECORD_BYTES, Deployed, deployed_release, wrong_versions

pytestmark = pytest.mark.claim(
    "A release of another chart version than wanted fails its check.",
    level=1,
)

SERVER = "v1.36.3"
CHART = "dcgm-exporter"
WANTED = choose_charts(load_charts(), SERVER)[CHART].version


@pytest.mark.parametrize(
    ("data", "found", "right"),
    [
        ({}, Deployed(WANTED, "deployed"), True),
        ({}, Deployed(f"v{WANTED}", "deployed"), True),
        ({}, Deployed("999.0.0", "deployed"), True),
        ({}, Deployed("0.0.1", "deployed"), False),
        ({"cluster_chart_versions": {CHART: WANTED}}, Deployed(f"{WANTED}+a1", "deployed"), True),
        ({}, Deployed(WANTED, "failed"), False),
        ({}, Deployed("", "deployed"), False),
        ({"cluster_chart_versions": {CHART: WANTED}}, Deployed("999.0.0", "deployed"), False),
        ({"cluster_chart_versions": {CHART: WANTED}}, Deployed(WANTED, "deployed"), True),
        ({"cluster_chart_versions": {CHART: "0.0.1"}}, Deployed(WANTED, "deployed"), False),
    ],
)
def test_what_is_deployed_is_compared_with_what_is_wanted(
    data: dict[str, Any], found: Deployed, right: bool
) -> None:
    wrong = wrong_versions(data, SERVER, {CHART: found})
    assert (wrong == []) == right
    assert all(str(found) in line for line in wrong)


def test_every_chart_is_looked_for_where_it_is_installed_by_default() -> None:
    settings, _ = load_cluster_settings({})
    assert settings
    spaces = {name: chart.namespace for name, chart in load_charts().charts.items()}
    assert {ref.name: ref.namespace for ref in our_releases(settings)} == spaces


def secret(number: int, content: Any, **data: Any) -> Any:
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(content).encode())))
    name = data.pop("name", f"sh.helm.release.v1.{CHART}.v{number}")
    labels = {"status": f"of {number}", **data.pop("labels", {"gpufleet": "me"})}
    metadata = SimpleNamespace(name=name, labels=labels)
    return SimpleNamespace(metadata=metadata, data={"release": packed.decode(), **data})


def version(number: str, chart: str = CHART) -> Any:
    return {"chart": {"metadata": {"name": chart, "version": number}}}


def found(*secrets: Any, workloads: Sequence[Any] = ()) -> Deployed | None:
    """The release that the check finds in a cluster with these Secrets and workloads."""
    asked: list[Any] = []

    def ask(call: Any, space: str, **more: Any) -> Any:
        asked.append((space, more["label_selector"], more["field_selector"]))
        return SimpleNamespace(items=list(secrets))

    core = SimpleNamespace(list_namespaced_secret=None)
    data = {"monitoring_namespace": "watch"}
    cluster: Any = SimpleNamespace(ask=ask, core=core, data=data, workloads=workloads)
    result = deployed_release(cluster, CHART)
    assert asked == [("watch", f"owner=helm,name={CHART}", "type=helm.sh/release.v1")]
    return result


def test_the_newest_revision_counts() -> None:
    assert found() is None
    two = [secret(9, version("1.0.0")), secret(10, version("2.0.0"))]
    assert found(*two) == Deployed("2.0.0", "of 10")
    assert found(*two, secret(11, version("9"), name="anything")) == Deployed("2.0.0", "of 10")
    assert found(*two, secret(11, version("3.0.0"), labels={})) is None, "another owner's"


def applied(tool: str, name: str, space: str = "watch") -> Any:
    """A workload of the release that a tool applies for its object of that name."""
    labels = {"helm.sh/chart": f"{CHART}-4.5.6"}
    labels |= {"flux": {"helm.toolkit.fluxcd.io/name": name},
               "argocd-own-label": {"argocd.argoproj.io/instance": name},
               "argocd-label": {"app.kubernetes.io/instance": name}}.get(tool, {})  # fmt: skip
    tracked = {"argocd.argoproj.io/tracking-id": f"{name}:apps/DaemonSet:watch/x"}
    annotations = tracked if tool == "argocd" else None
    return SimpleNamespace(
        metadata=SimpleNamespace(namespace=space, labels=labels, annotations=annotations)
    )


@pytest.mark.parametrize(
    ("tool", "version_of_tool"),
    [
        ("flux", "1.0.0"),
        ("argocd", "4.5.6"),
        ("argocd-label", "4.5.6"),
        ("argocd-own-label", "4.5.6"),
    ],
)
def test_a_release_of_rendered_files_is_ours(tool: str, version_of_tool: str) -> None:
    record = secret(1, version("1.0.0"), labels={"status": "deployed"})
    ours = applied(tool, f"gpufleet-{CHART}")
    assert found(record, workloads=[ours]) == Deployed(version_of_tool, "deployed")
    for other in (applied(tool, CHART), applied(tool, f"gpufleet-{CHART}", "elsewhere")):
        assert found(record, workloads=[other]) is None


def test_argocd_keeps_no_record() -> None:
    for name in (f"gpufleet-{CHART}", f"argocd_gpufleet-{CHART}.prod"):
        assert found(workloads=[applied("argocd", name)]) == Deployed("4.5.6", "deployed")
    assert found(workloads=[applied("flux", f"gpufleet-{CHART}")]) is None


@pytest.mark.parametrize(
    "content",
    [{}, [], version("1.0.0", "other"), "x" * (MAX_RECORD_BYTES + 1), {"chart": None}],
    ids=type,
)
def test_a_record_that_cannot_be_read_is_not_taken_for_one(content: Any) -> None:
    assert found(secret(1, content)) == Deployed("", "of 1")
    assert found(secret(1, {}, release="garbled")) == Deployed("", "of 1")
