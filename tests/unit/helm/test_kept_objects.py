"""Volume claims and CRDs of a release that an upgrade must not delete."""

from __future__ import annotations

from typing import Any

from gpufleet.gpu_stack.operations.releases import describe_release
from gpufleet.helm.plan import with_objects
from gpufleet.helm.release import ChartSource, Release, ReleasePlan
from gpufleet.kube.facts import ClusterFacts, Crd, HelmRelease, ObjectRef, ReleaseRef, ServerVersion

RELEASE = Release("one", "space", "chart", "2.0.0", ChartSource("archive", "x"))
CLAIM = ObjectRef("PersistentVolumeClaim", "space", "grafana")
BEFORE = HelmRelease("one", "space", 1, "deployed", "chart", "1.0.0", "1", {}, claims=(CLAIM,))
CRDS = {
    name: Crd(name, "Thing", ("v1",), {}, ReleaseRef("space", owner) if owner else None)
    for name, owner in {"ours.x": "one", "theirs.x": "two", "of-crds.x": ""}.items()
}
FACTS = ClusterFacts("test", ServerVersion(1, 36), crds=CRDS, releases=(BEFORE,))


def kept(before: HelmRelease | None, *objects: dict[str, Any]) -> list[str]:
    plan = ReleasePlan(RELEASE, "upgrade", "", before)
    return [str(ref) for ref in with_objects(plan, objects, FACTS).kept]


def test_objects_with_data_that_the_chart_no_longer_has_are_kept() -> None:
    claim = {"kind": CLAIM.kind, "apiVersion": "v1", "metadata": {"name": CLAIM.name}}
    crd = {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "ours.x"},
        "spec": {"group": "x", "names": {"kind": "Thing"}, "versions": []},
    }
    both = [str(CLAIM), "CustomResourceDefinition ours.x"]
    assert kept(BEFORE) == both
    assert kept(BEFORE, crd) == both[:1]
    assert kept(BEFORE, claim) == both[1:]
    assert kept(BEFORE, claim, crd) == []
    assert kept(None) == []


def test_a_plan_names_the_objects_that_it_keeps() -> None:
    plan = ReleasePlan(RELEASE, "upgrade", "", BEFORE, kept=(CLAIM,))
    assert describe_release(plan)["kept"] == ["PersistentVolumeClaim space/grafana"]
