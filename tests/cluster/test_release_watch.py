"""Looking on while helm works and pods come up: on real control planes."""

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
    """The kubeconfig of a user who may list what a release is made of, but no Jobs and events."""
    return kubeconfig_of(place.cluster, place.namespace, LISTS, tmp_path / "limited")


def test_a_user_who_may_not_list_jobs_does_not_end_helm(place: Site, limited: Path) -> None:
    said: list[str] = []
    looking = watch(place, limited, said)
    for spent in (QUIET, QUIET + REPORT):
        looking.reported = 0.0
        looking.during_helm(spent)
    assert ["jobs.batch is forbidden" in line for line in said] == [True, False, False], said
    assert "helm waits for the API" in said[-1]


def test_a_server_that_is_gone_does_not_end_helm(place: Site, tmp_path: Path) -> None:
    text = place.cluster.kubeconfig.read_text()
    nowhere = tmp_path / "nowhere"
    nowhere.write_text(text.replace(place.cluster.api.configuration.host, "https://127.0.0.1:9"))
    said: list[str] = []
    watch(place, nowhere, said).during_helm(QUIET)
    [line] = said
    assert "helm is running; its hooks cannot be read: " in line
    assert "127.0.0.1:9" in line


def test_pods_say_why_where_events_may_not_be_seen(place: Site, limited: Path) -> None:
    held = json.dumps({"annotations": {WAITING: "ImagePullBackOff"}})
    words = [place.helm, "install", "one", archive(place.folder), "-n", place.namespace]
    words += ["--set-json", f"deployment={held}"]
    environment = {**os.environ, "KUBECONFIG": str(place.cluster.kubeconfig)}
    subprocess.run(words, check=True, env=environment, capture_output=True)
    said: list[str] = []
    looking = watch(place, limited, said)

    def told() -> str:
        return "; ".join(map(str, looking.why(looking.workloads())))

    assert wait_until(lambda: "cannot be pulled" in told(), SECONDS), told()
    told()
    [line] = said
    assert 'cannot list resource "events"' in line


def test_what_a_hooks_pod_said_is_kept_when_the_pod_is_gone(place: Site) -> None:
    looking = watch(place, place.cluster.kubeconfig, [])
    batch: Any = client.BatchV1Api(place.cluster.api)

    def told() -> str:
        looking.reported = 0.0
        looking.during_helm(QUIET)
        return "; ".join(looking.hook_reasons)

    template = pod({}, annotations={WAITING: "ImagePullBackOff"})
    template["spec"]["restartPolicy"] = "Never"
    metadata = {"name": "hook", "annotations": {"helm.sh/hook": "pre-install"}}
    body = {"metadata": metadata, "spec": {"backoffLimit": 0, "template": template}}
    batch.create_namespaced_job(place.namespace, body)
    assert wait_until(lambda: "cannot be pulled" in told(), SECONDS), told()
    batch.patch_namespaced_job("hook", place.namespace, {"spec": {"activeDeadlineSeconds": 1}})
    assert wait_until(lambda: not place.core.list_namespaced_pod(place.namespace).items, SECONDS)
    assert wait_until(lambda: "Job hook failed" in told(), SECONDS), told()
    assert "cannot be pulled" in told()
