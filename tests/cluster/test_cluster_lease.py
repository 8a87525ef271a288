"""Who is at work on a cluster: runs of two users on a real control plane, one of them killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet_sandbox.cluster import Cluster
from tests.cluster.tiny import Site

ROOT = Path(__file__).resolve().parents[2]
# opens the cluster, says so, and is at work until its input ends
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


def begin(place: Site, user: str, wait: float = 60) -> subprocess.Popen[str]:
    """A run of another user: with a home and a cache of its own."""
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


def at_work(run: subprocess.Popen[str]) -> list[str]:
    """The lines that a run printed before it was at work."""
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


def test_one_user_is_at_work_at_a_time_and_a_killed_one_keeps_nobody_waiting(place: Site) -> None:
    ada = begin(place, "ada")
    assert at_work(ada) == []
    assert holder(place.cluster).startswith("ada@")
    hasty = begin(place, "grace", wait=0)
    _, error = hasty.communicate(timeout=60)
    assert hasty.returncode == 1
    assert "GF899" in error
    assert f"process {ada.pid}, since 20" in error
    grace = begin(place, "grace")
    assert grace.stdout
    assert "waiting for the cluster lock, held by ada@" in grace.stdout.readline()
    began = time.monotonic()
    ada.kill()
    assert all("waiting for the cluster lock, held by ada@" in line for line in at_work(grace))
    assert time.monotonic() - began < 15, "the Lease was not given back, it ran out"
    assert holder(place.cluster).startswith("grace@")
    grace.communicate(timeout=60)
    assert grace.returncode == 0
    assert holder(place.cluster) == ""
    for user in ("ada", "grace"):
        assert not list((place.folder / user).glob("gpufleet-*")), "keys are left behind"
    ada.communicate()


def test_a_run_that_lost_its_lease_changes_nothing_more(place: Site) -> None:
    opened = place.open(wait=10)
    planned = opened.plan(place.release({}))
    leases: Any = client.CoordinationV1Api(place.cluster.api)
    other = {"spec": {"holderIdentity": "grace@elsewhere"}}
    leases.patch_namespaced_lease("gpufleet", "kube-system", other)
    assert opened.helm.lease
    opened.helm.lease.lease.confirmed = float("-inf")
    outcome = opened.carry_out(planned, print)
    assert [found.code for found in outcome.findings] == ["GF823"]
    assert "grace@elsewhere" in outcome.findings[0].message
    assert place.open().facts.release(place.namespace, "one") is None
    opened.helm.lease.give_back()
    assert holder(place.cluster) == "grace@elsewhere"
    leases.delete_namespaced_lease("gpufleet", "kube-system")


def test_the_uid_of_another_cluster_is_refused_before_anything_is_written(place: Site) -> None:
    leases: Any = client.CoordinationV1Api(place.cluster.api)
    before = leases.list_namespaced_lease("kube-system").metadata.resource_version
    with pytest.raises(ClusterProblem) as caught:
        place.open(wait=0, uid="of-another-cluster")
    (found,) = caught.value.findings
    uid = place.core.read_namespace("kube-system").metadata.uid
    assert (found.code, uid in found.message) == ("GF824", True)
    assert before
    assert place.open(uid=uid).facts.server.full
