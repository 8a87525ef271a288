"""Helm releases on real control planes: installed, unchanged, upgraded, rolled back."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart_values import values_mark
from gpufleet.helm.release import VALUES_LABEL, Readiness
from gpufleet.kube.helm_releases import OWNER_LABEL
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.tiny import Site
from tests.selection import some

pytestmark = pytest.mark.claim(
    "Releases: no changes, a diff without secrets, and a roll-back with its reason, with "
    "helm 3 and 4.",
    level=5,
)

WAITING = "sandbox.gpufleet/waiting"  # annotation: kwok holds the pod's containers in this state


def test_a_second_run_changes_nothing(site: Site) -> None:
    first = site.apply({"daemonset": {"enabled": True}, "hook": {"enabled": True}})
    assert first.ok, first.findings
    assert first.plan.action == "install"
    found = site.open().facts.release(site.namespace, "one")
    assert found
    assert (found.status, found.chart_version, found.revision) == ("deployed", "1.0.0", 1)
    assert OWNER_LABEL in found.labels
    before = site.versions()
    second = site.apply({"daemonset": {"enabled": True}, "hook": {"enabled": True}})
    assert (second.plan.action, second.outcome) == ("no-op", None)
    assert site.versions() == before


def test_values_are_compared_by_meaning(site: Site) -> None:
    values = {"deployment": {"replicas": 2}, "settings": {"a": 1, "b": None, "c": [1, {"d": None}]}}
    assert site.apply(values).ok
    same = {"settings": {"c": [1.0, {"d": None}], "b": None, "a": 1.0},
            "deployment": {"replicas": 2}}  # fmt: skip
    assert site.apply(same).plan.action == "no-op"


def test_an_upgrade_shows_what_changes_and_no_secret(site: Site) -> None:
    assert site.apply({"password": "hunter2-old"}).ok
    run = site.apply({"password": "hunter2-new", "deployment": {"replicas": 2}}, "1.1.0")
    assert run.ok, run.findings
    assert run.plan.action == "upgrade"
    shown = "\n".join([*run.lines, *run.plan.diff, run.plan.reason, repr(run.plan)])
    assert "hunter2" not in shown
    assert "+password: '*** (changed)'" in shown
    assert "+  replicas: 2" in shown
    assert "chart 1.0.0 -> 1.1.0" in shown
    assert site.deployment().status.available_replicas == 2
    secret = site.core.read_namespaced_secret("one", site.namespace)
    assert secret.data["password"] == "aHVudGVyMi1uZXc="


BAD = {
    "image": (
        {"deployment": {"annotations": {WAITING: "ImagePullBackOff"}}},
        "the image registry.example/tiny:v0.1.0 cannot be pulled (ImagePullBackOff",
    ),
    "config": (
        {"deployment": {"annotations": {WAITING: "CreateContainerConfigError"}}},
        "container main does not start (CreateContainerConfigError",
    ),
    "unschedulable": (
        {"deployment": {"nodeSelector": {"disk": "ssd"}}},
        "cannot be scheduled: 0/3 nodes are available",
    ),
}


@pytest.mark.parametrize("cause", some(BAD, ["image"]))
def test_a_failed_upgrade_is_rolled_back_with_its_reason(site: Site, cause: str) -> None:
    values, reason = BAD[cause]
    good = {"settings": {"colour": "green"}}
    assert site.apply(good).ok
    ready = Readiness(timeout=8, patience=3)
    run = site.apply({**values, "settings": {"colour": "red"}}, "1.1.0", ready=ready)
    assert not run.ok
    assert reason in run.finding("GF847").message
    assert "tiny 1.0.0" in run.finding("GF848").message
    after = site.open().facts.release(site.namespace, "one")
    assert after
    assert (after.status, after.chart_version, after.values) == ("deployed", "1.0.0", good)
    assert after.labels[VALUES_LABEL] == values_mark(good)
    config = site.core.read_namespaced_config_map("one", site.namespace)
    assert config.data["settings"] == '{"colour":"green"}'
    assert site.apply(good).ok
    again = site.apply({"settings": {"colour": "red"}}, "1.1.0")  # the cause is gone
    assert again.ok, again.findings


@pytest.mark.extended
def test_a_failed_installation_stays_and_is_completed_by_the_next_run(site: Site) -> None:
    ready = Readiness(timeout=8, patience=3)
    bad = site.apply({"deployment": {"annotations": {WAITING: "ErrImagePull"}}}, ready=ready)
    assert not bad.ok
    assert "left as it is" in bad.finding("GF847").remedy
    assert site.deployment().metadata.name == "one"
    still = site.apply({"deployment": {"annotations": {WAITING: "ErrImagePull"}}}, ready=ready)
    assert still.plan.action == "wait"
    assert not still.ok
    good = site.apply({})
    assert good.ok, good.findings


@pytest.mark.extended
def test_a_failed_hook_job_is_reported_with_the_reason(site: Site) -> None:
    assert site.apply({}).ok
    hook = {"enabled": True, "deadline": 8, "annotations": {WAITING: "ImagePullBackOff"}}
    run = site.apply({"hook": hook, "settings": {"new": True}})
    assert not run.ok
    found = run.finding("GF840")
    # an old job controller may miss the deadline, and helm waits for its own
    assert re.search(r"Job one-hook: |/one-hook not ready", found.message), found.message
    assert "simulated" in found.message  # an event of its pod, or the status of its container
    assert site.apply({}).plan.action == "no-op"


def test_a_deleted_workload_is_restored(site: Site) -> None:
    values = {"daemonset": {"enabled": True}}
    assert site.apply(values).ok
    site.apps.delete_namespaced_daemon_set("one", site.namespace)
    run = site.apply(values)
    assert run.plan.action == "repair"
    assert "DaemonSet" in run.plan.reason
    assert run.ok, run.findings
    assert site.apps.read_namespaced_daemon_set("one", site.namespace)
    assert site.apply(values).plan.action == "no-op"


def test_a_field_changed_by_hand(site: Site) -> None:
    """helm 3 resets it; helm 4 with server-side apply refuses, naming the manager and the field."""
    assert site.apply({}).ok
    scale = {"spec": {"replicas": 3}}
    site.apps.patch_namespaced_deployment_scale("one", site.namespace, scale, field_manager="bob")
    wanted = {"settings": {"new": True}}
    run = site.apply(wanted)
    # an older server does not record who changed a scale, so it sees no conflict
    noted = version_tuple(site.cluster.version) >= (1, 22)
    if site.helm.name == "helm4" and noted:
        found = run.finding("GF845")
        assert "bob" in found.message
        assert ".spec.replicas" in found.message
        assert site.deployment().spec.replicas == 3
        run = site.apply(wanted, force_conflicts=True)
    assert run.ok, run.findings
    assert site.deployment().spec.replicas == 1
    assert site.apply(wanted).plan.action == "no-op"


def test_a_field_unknown_to_kubernetes(site: Site) -> None:
    """A new server drops it (helm 3: a warning), an old one and helm 4 reject it."""
    run = site.apply({"unknownField": True})
    old = version_tuple(site.cluster.version) < (1, 25)
    if site.helm.name == "helm" and not old:
        assert run.ok
        assert "noSuchField" in run.finding("GF850").message
    else:
        assert not run.ok
        assert "noSuchField" in run.finding("GF844").message


def test_a_workload_with_a_changed_selector_is_recreated(site: Site) -> None:
    assert site.apply({}).ok

    def other_selector(path: str, text: str) -> str:
        label = "app: {{ .Release.Name }}}\n  template"
        return text.replace(label, label.replace("app:", "x: z, app:")).replace(
            '(dict "app"', '(dict "x" "z" "app"'
        )

    run = site.apply({}, "1.1.0", edit=other_selector)
    assert run.ok, run.findings
    assert "Deployment" in run.finding("GF881").message
    assert site.deployment().spec.selector.match_labels["x"] == "z"


def test_fields_that_cannot_change_are_named(site: Site) -> None:
    assert site.apply({}).ok

    def narrower(path: str, text: str) -> str:
        labels = "matchLabels: {app: {{ .Release.Name }}}\n"
        more = "    matchExpressions: [{key: x, operator: DoesNotExist}]\n"
        return text.replace(f"{labels}  template", f"{labels}{more}  template")

    run = site.apply({}, "1.1.0", edit=narrower)
    assert not run.ok
    assert "deployment/one" in run.finding("GF853").remedy
    after = site.open().facts.release(site.namespace, "one")
    assert after
    assert (after.status, after.chart_version) == ("deployed", "1.0.0")


def test_a_quota_is_the_reason(place: Site) -> None:
    body = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    place.core.create_namespaced_resource_quota(place.namespace, body)

    def counted() -> bool:  # only then it is enforced
        quota = place.core.read_namespaced_resource_quota("none", place.namespace)
        return bool(quota.status.hard)

    assert wait_until(counted, 120)
    run = place.apply({}, ready=Readiness(timeout=20, patience=2))
    assert not run.ok
    assert "exceeded quota: none" in run.finding("GF819").message
    place.core.delete_namespaced_resource_quota("none", place.namespace)


@pytest.mark.claim(
    "Values that were set by hand are named before they are replaced.",
    level=5,
)
def test_values_set_by_hand_are_named_before_they_are_replaced(site: Site) -> None:
    """`helm upgrade --reuse-values --set`, as an engineer on call does it."""
    values = {"deployment": {"replicas": 2}}
    assert site.apply(values).ok
    words = ["upgrade", "one", site.release().source.location, "--namespace", site.namespace]
    words += ["--reuse-values", "--set", "settings.mine=1"]
    environment = os.environ | {"KUBECONFIG": str(site.cluster.kubeconfig)}
    subprocess.run([site.helm, *words], env=environment, check=True, capture_output=True)
    found = site.apply(values)
    assert found.plan.action == "upgrade"
    assert "of its values: settings" in found.finding("GF868").message
    assert found.ok, found.findings
    again = site.apply(values)
    assert (again.plan.action, again.plan.findings) == ("no-op", ())
