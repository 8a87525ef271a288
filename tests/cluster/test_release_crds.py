"""CRDs are updated before the chart that needs them, on real control planes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.tiny import CHART, Site

CRD = "widgets.tiny.example"
CRD_TEXT = (CHART / "crds/widgets.yaml").read_text()
ANNOTATION = "tiny.example/version"
WIDGET = {"widget": {"enabled": True, "extra": "new"}}


@pytest.fixture
def widgets(site: Site) -> Iterator[Site]:
    """A site whose cluster has no CRD of the chart, before and after."""
    yield remove(site)
    remove(site)


def remove(site: Site) -> Site:
    """Delete the CRD, and wait until the server has dropped its schema."""
    api: Any = client.ApiextensionsV1Api(site.cluster.api)
    if CRD in {item.metadata.name for item in api.list_custom_resource_definition().items}:
        api.delete_custom_resource_definition(CRD)
    assert wait_until(lambda: not described(site), 120)
    return site


def described(site: Site) -> list[dict[str, Any]]:
    """The chart's kinds in the server's OpenAPI document, which lags behind the CRDs."""
    definitions = ClusterApi(KubeAccess(str(site.cluster.kubeconfig))).get("/openapi/v2")
    found = definitions["definitions"].items()
    return [kind for name, kind in found if name.startswith("example.tiny")]


def newer(path: str, text: str) -> str:
    """The chart's CRD as of version 0.2.0: it has the field `extra`."""
    if path == "Chart.yaml":
        return text.replace("appVersion: v0.1.0", "appVersion: v0.2.0")
    if path.startswith("crds/"):
        text = text.replace('"0.1.0"', '"0.2.0"')
        line = "                size: {type: integer}\n"
        return text.replace(line, line + "                extra: {type: string}\n")
    return text


def crd(site: Site) -> Any:
    return client.ApiextensionsV1Api(site.cluster.api).read_custom_resource_definition(CRD)


def widget(site: Site) -> dict[str, Any]:
    api: Any = client.CustomObjectsApi(site.cluster.api)
    found = api.get_namespaced_custom_object("tiny.example", "v1", site.namespace, "widgets", "one")
    return dict(found["spec"])


def test_crds_are_updated_before_the_upgrade(widgets: Site) -> None:
    first = widgets.apply({"widget": {"enabled": True}}, crd_version=ANNOTATION)
    assert first.ok, first.findings
    assert [(s.action, s.after) for s in first.plan.crds] == [("create", "0.1.0")]
    run = widgets.apply(WIDGET, "1.1.0", edit=newer, crd_version=ANNOTATION)
    assert run.ok, run.findings
    assert [(s.action, s.before, s.after) for s in run.plan.crds] == [("update", "0.1.0", "0.2.0")]
    assert run.findings == []
    assert widget(widgets)["extra"] == "new"
    assert widgets.apply(WIDGET, "1.1.0", edit=newer, crd_version=ANNOTATION).plan.action == "no-op"


@pytest.mark.extended
def test_without_the_update_the_field_is_lost_or_refused(widgets: Site) -> None:
    """Why CRDs are updated; here the chart has no newer CRD."""
    assert widgets.apply({"widget": {"enabled": True}}).ok
    run = widgets.apply(WIDGET, "1.1.0")
    if run.ok:
        assert "extra" in run.finding("GF850").message
        assert "extra" not in widget(widgets)
    else:
        assert "extra" in run.finding("GF844").message


@pytest.mark.extended
def test_a_downgraded_crd_is_updated_again(widgets: Site) -> None:
    assert widgets.apply(WIDGET, "1.1.0", edit=newer, crd_version=ANNOTATION).ok
    assert "'extra'" in str(described(widgets))
    old = crd(widgets)
    old.metadata.annotations["tiny.example/version"] = "0.1.0"
    del old.spec.versions[0].schema.open_apiv3_schema.properties["spec"].properties["extra"]
    client.ApiextensionsV1Api(widgets.cluster.api).replace_custom_resource_definition(CRD, old)
    # else the run could still see the newer schema, and helm the older one
    assert wait_until(lambda: "'extra'" not in str(described(widgets)), 120)
    run = widgets.apply(WIDGET, "1.1.0", edit=newer, crd_version=ANNOTATION)
    assert run.plan.action == "upgrade"
    assert CRD in run.plan.reason
    assert run.ok, run.findings
    assert crd(widgets).metadata.annotations["tiny.example/version"] == "0.2.0"


@pytest.mark.extended
def test_a_newer_crd_is_left_alone(widgets: Site) -> None:
    assert widgets.apply(WIDGET, "1.1.0", edit=newer, crd_version=ANNOTATION).ok
    run = widgets.apply({"widget": {"enabled": True}}, name="two", crd_version=ANNOTATION)
    assert run.ok
    assert run.plan.crds == ()
    assert "the cluster has 0.2.0, which is newer" in run.finding("GF837").message
    assert crd(widgets).metadata.annotations["tiny.example/version"] == "0.2.0"


@pytest.mark.extended
def test_without_an_annotation_the_schemas_are_compared(widgets: Site) -> None:
    assert widgets.apply({"widget": {"enabled": True}}).ok
    same = widgets.apply({"widget": {"enabled": True}, "settings": {"x": 1}})
    assert (same.plan.action, same.plan.crds) == ("upgrade", ())
    run = widgets.apply(WIDGET, "1.1.0", edit=newer)
    assert [step.action for step in run.plan.crds] == ["update"]
    assert run.ok, run.findings
    assert widget(widgets)["extra"] == "new"


CLAIM = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def with_claim(path: str, text: str) -> str:
    return (
        f"{newer(path, text)}\n---\n{CLAIM}"
        if path == "templates/objects.yaml"
        else newer(path, text)
    )


def with_data(path: str, text: str) -> str:
    """The older chart with its CRD and a volume claim among the templates."""
    if path.startswith("crds/"):
        return ""
    return f"{text}\n---\n{CRD_TEXT}\n---\n{CLAIM}" if path == "templates/objects.yaml" else text


@pytest.mark.extended
def test_objects_with_data_stay_when_their_chart_no_longer_has_them(widgets: Site) -> None:
    """Helm would delete the CRD, with its objects, and the claim."""
    assert widgets.apply(edit=with_data).ok
    assert wait_until(lambda: bool(described(widgets)), 120)
    own = {
        "apiVersion": "tiny.example/v1",
        "kind": "Widget",
        "metadata": {"name": "own"},
        "spec": {},
    }
    api: Any = client.CustomObjectsApi(widgets.cluster.api)
    api.create_namespaced_custom_object("tiny.example", "v1", widgets.namespace, "widgets", own)
    run = widgets.apply(version="1.1.0", edit=newer)
    assert run.ok, run.findings
    claim = widgets.core.read_namespaced_persistent_volume_claim("data", widgets.namespace)
    assert claim.metadata.deletion_timestamp is None
    found = api.list_namespaced_custom_object("tiny.example", "v1", widgets.namespace, "widgets")
    assert [item["metadata"]["name"] for item in found["items"]] == ["own"]
    assert widgets.apply(version="1.1.0", edit=newer).plan.action == "no-op"
    again = widgets.apply(version="1.2.0", edit=with_claim)
    assert again.ok, again.findings  # helm adopts it, with its data
    assert [ref.kind for ref in again.plan.kept] == ["CustomResourceDefinition"]
    claim = widgets.core.read_namespaced_persistent_volume_claim("data", widgets.namespace)
    assert claim.metadata.deletion_timestamp is None


def test_a_rejected_crd_stops_the_run_before_the_release(widgets: Site) -> None:
    def broken(path: str, text: str) -> str:
        return text.replace("plural: widgets", "plural: Widgets")

    run = widgets.apply({}, edit=broken)
    assert CRD in run.finding("GF880").message
    assert widgets.open().facts.release(widgets.namespace, "one") is None
