"""Progress reports while helm runs and pods start, on real control planes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from gpufleet.helm.operations.release_watch import QUIET, REPORT, Watch
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS, pod
from tests.cluster.test_releases import WAITING
from tests.cluster.tiny import Site, archive
from tests.cluster.users import Rules, kubeconfig_of

LISTS: Rules = [
    {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
    {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get", "list"]},
]


def watch(place: Site, kubeconfig: Path, said: list[str]) -> Watch:
    return Watch(ClusterApi(KubeAccess(str(kubeconfig))), place.release(), said.append)


@pytest.fixture
def limited(place: Site, tmp_path: Path) -> Path:
    """A kubeconfig of a user who can list the objects of a release, but not Jobs and events."""
    return kubeconfig_of(place.cluster, place.namespace, LISTS, tmp_path / "limited")


def test_helm_continues_if_the_user_cannot_list_jobs(place: Site, limited: Path) -> None:
    said: list[str] = []
    watcher = watch(place, limited, said)
    for spent in (QUIET, QUIET + REPORT):
        watcher.reported = 0.0
        watcher.during_helm(spent)
    assert ["jobs.batch is forbidden" in line for line in said] == [True, False, False], said
    assert "helm waits for the API" in said[-1]


def test_helm_continues_if_the_server_is_unreachable(place: Site, tmp_path: Path) -> None:
    text = place.cluster.kubeconfig.read_text()
    nowhere = tmp_path / "nowhere"
    nowhere.write_text(text.replace(place.cluster.api.configuration.host, "https://127.0.0.1:9"))
    said: list[str] = []
    watch(place, nowhere, said).during_helm(QUIET)
    [line] = said
    assert "helm is running; its hooks cannot be read: " in line
    assert "127.0.0.1:9" in line


def test_pods_give_the_reason_if_events_are_forbidden(place: Site, limited: Path) -> None:
    held = json.dumps({"annotations": {WAITING: "ImagePullBackOff"}})
    words = [place.helm, "install", "one", archive(place.folder), "-n", place.namespace]
    words += ["--set-json", f"deployment={held}"]
    environment = {**os.environ, "KUBECONFIG": str(place.cluster.kubeconfig)}
    subprocess.run(words, check=True, env=environment, capture_output=True)
    said: list[str] = []
    watcher = watch(place, limited, said)

    def reasons() -> str:
        return "; ".join(map(str, watcher.why(watcher.workloads())))

    assert wait_until(lambda: "cannot be pulled" in reasons(), SECONDS), reasons()
    reasons()
    [line] = said
    assert 'cannot list resource "events"' in line


def test_the_reason_of_a_hooks_pod_outlives_the_pod(place: Site) -> None:
    watcher = watch(place, place.cluster.kubeconfig, [])
    batch: Any = client.BatchV1Api(place.cluster.api)

    def reasons() -> str:
        watcher.reported = 0.0
        watcher.during_helm(QUIET)
        return "; ".join(watcher.hook_reasons)

    template = pod({}, annotations={WAITING: "ImagePullBackOff"})
    template["spec"]["restartPolicy"] = "Never"
    metadata = {"name": "hook", "annotations": {"helm.sh/hook": "pre-install"}}
    body = {"metadata": metadata, "spec": {"backoffLimit": 0, "template": template}}
    batch.create_namespaced_job(place.namespace, body)
    assert wait_until(lambda: "cannot be pulled" in reasons(), SECONDS), reasons()
    batch.patch_namespaced_job("hook", place.namespace, {"spec": {"activeDeadlineSeconds": 1}})
    assert wait_until(lambda: not place.core.list_namespaced_pod(place.namespace).items, SECONDS)
    assert wait_until(lambda: "Job hook failed" in reasons(), SECONDS), reasons()
    assert "cannot be pulled" in reasons()
