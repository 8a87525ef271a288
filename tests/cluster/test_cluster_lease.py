"""The cluster lock: runs of two users on a real control plane, one of them killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet_sandbox.cluster import Cluster
from tests.cluster.tiny import Site

pytestmark = pytest.mark.claim(
    "Only one run at a time changes a cluster, and a killed run does not block the next.",
    level=5,
)

ROOT = Path(__file__).resolve().parents[2]
# opens the cluster, reports it, and holds the lock until its input ends
SCRIPT = """
import sys
from gpufleet.helm.operations.cluster import open_cluster
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
kubeconfig, helm, wait = sys.argv[1:]
try:
    open_cluster("c", KubeAccess(kubeconfig), (), helm=helm, wait=float(wait),
                 say=lambda line: print(line, flush=True))
except ClusterProblem as problem:
    sys.exit(str(problem))
print("at work", flush=True)
sys.stdin.read()
"""


def start_run(place: Site, user: str, wait: float = 60) -> subprocess.Popen[str]:
    """Start a run of another user, with a separate home and cache."""
    home = place.folder / user
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, place.cluster.kubeconfig, place.helm, str(wait)],
        cwd=ROOT,
        env={**kept, "HOME": str(home), "USER": user, "LOGNAME": user, "TMPDIR": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def lines_until_locked(run: subprocess.Popen[str]) -> list[str]:
    """The lines that a run prints before it holds the lock."""
    assert run.stdout
    lines = []
    for line in run.stdout:
        if line == "at work\n":
            return lines
        lines.append(line)
    pytest.fail(f"it ended: {run.communicate()}")


def holder(cluster: Cluster) -> str:
    leases: Any = client.CoordinationV1Api(cluster.api)
    return leases.read_namespaced_lease("gpufleet", "kube-system").spec.holder_identity or ""


def test_one_user_holds_the_lock_at_a_time_and_a_killed_run_loses_it(place: Site) -> None:
    ada = start_run(place, "ada")
    assert lines_until_locked(ada) == []
    assert holder(place.cluster).startswith("ada@")
    impatient = start_run(place, "grace", wait=0)
    _, error = impatient.communicate(timeout=900)
    assert impatient.returncode == 1
    assert "GF899" in error
    assert f"process {ada.pid}, since 20" in error
    grace = start_run(place, "grace", wait=120)
    assert grace.stdout
    assert "waiting for the cluster lock, held by ada@" in grace.stdout.readline()
    ada.kill()
    assert all(
        "waiting for the cluster lock, held by ada@" in line for line in lines_until_locked(grace)
    )
    assert holder(place.cluster).startswith("grace@")
    grace.communicate(timeout=900)
    assert grace.returncode == 0
    assert holder(place.cluster) == ""
    ada.communicate()
    assert list((place.folder / "ada").glob("gpufleet-*")), "the run was not killed"
    again = start_run(place, "ada")
    lines_until_locked(again)
    again.communicate(timeout=900)
    for user in ("ada", "grace"):
        assert not list((place.folder / user).glob("gpufleet-*")), "keys are left behind"


def test_a_run_that_lost_its_lease_makes_no_more_changes(place: Site) -> None:
    opened = place.open(wait=10)
    planned = opened.plan(place.release({}))
    leases: Any = client.CoordinationV1Api(place.cluster.api)
    other = {"spec": {"holderIdentity": "grace@elsewhere"}}
    leases.patch_namespaced_lease("gpufleet", "kube-system", other)
    assert opened.helm.lease
    opened.helm.lease.confirmed = float("-inf")
    outcome = opened.carry_out(planned, print)
    assert [found.code for found in outcome.findings] == ["GF823"]
    assert "grace@elsewhere" in outcome.findings[0].message
    assert place.open().facts.release(place.namespace, "one") is None
    opened.helm.lease.give_back()
    assert holder(place.cluster) == "grace@elsewhere"
    leases.delete_namespaced_lease("gpufleet", "kube-system")


def test_the_uid_of_another_cluster_is_refused_before_any_write(place: Site) -> None:
    leases: Any = client.CoordinationV1Api(place.cluster.api)
    before = leases.list_namespaced_lease("kube-system").metadata.resource_version
    with pytest.raises(ClusterProblem) as caught:
        place.open(wait=0, uid="of-another-cluster")
    (found,) = caught.value.findings
    uid = place.core.read_namespace("kube-system").metadata.uid
    assert (found.code, uid in found.message) == ("GF824", True)
    assert before
    assert place.open(uid=uid).facts.server.full
