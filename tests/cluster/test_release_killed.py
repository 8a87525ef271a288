"""Runs that are killed during a release: the next run converges, nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpufleet.helm.operations.cluster import controller_id
from gpufleet.kube.facts import HelmRelease
from gpufleet.kube.helm_releases import OWNER_LABEL
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.lease import LEASES, NAME
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.tiny import Site, archive

pytestmark = pytest.mark.claim("The next run completes a release whose run was killed.", level=5)

WAITING = "sandbox.gpufleet/waiting"
# a run in a separate process, so that all of gpufleet is killed
SCRIPT = """
import json, sys
from gpufleet.kube.facts import ReleaseRef
from gpufleet.helm.operations.cluster import open_cluster
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.helm.release import ChartSource, Release
kubeconfig, helm, namespace, archive, version, values = sys.argv[1:]
ours = [ReleaseRef(namespace, "one")]
cluster = open_cluster("c", KubeAccess(kubeconfig), ours, helm=helm)
wanted = Release("one", namespace, "tiny", version, ChartSource("archive", archive),
                 json.loads(values))
planned = cluster.plan(wanted)
print(planned.action, flush=True)
if planned.needed:
    outcome = cluster.carry_out(planned, lambda line: print(line, flush=True))
    print(*outcome.findings, sep="\\n")
    sys.exit(0 if outcome.ok else 1)
"""
BOTH = {"daemonset": {"enabled": True}, "hook": {"enabled": True}}


def hanging(**more: Any) -> dict[str, Any]:
    """Values with a hook Job whose pod never starts."""
    return {"hook": {"enabled": True, "annotations": {WAITING: "ContainerCreating"}, **more}}


ROOT = Path(__file__).resolve().parents[2]


def start_run(site: Site, values: dict[str, Any], version: str = "1.0.0") -> subprocess.Popen[str]:
    """Start a run in a new process group, so that its helm can be killed with it."""
    path = archive(site.folder, version)
    words = [site.cluster.kubeconfig, site.helm, site.namespace, path, version, json.dumps(values)]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary(site))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def temporary(site: Site) -> Path:
    """The folder for temporary files of this test's runs."""
    folder = site.folder / "temporary"
    folder.mkdir(exist_ok=True)
    return folder


def has_ended(run: subprocess.Popen[str]) -> bool:
    """True if the process has ended. It stays a zombie, so its number is not given away."""
    return os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def kill(site: Site, run: subprocess.Popen[str]) -> None:
    """Kill a run and its helm, as a failure of the machine does, and let the Lease expire."""
    os.kill(run.pid, signal.SIGSTOP)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    for pid in children:
        os.kill(int(pid), signal.SIGKILL)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    api = ClusterApi(KubeAccess(str(site.cluster.kubeconfig)))
    if api.find(f"{LEASES}/{NAME}"):
        api.delete(f"{LEASES}/{NAME}")


def found(site: Site) -> HelmRelease | None:
    return site.open().facts.release(site.namespace, "one")


def is_pending(site: Site, status: str) -> bool:
    release = found(site)
    return release is not None and release.status == status


def test_a_killed_installation(site: Site) -> None:
    run = start_run(site, hanging())
    assert wait_until(lambda: is_pending(site, "pending-install"), 120)
    kill(site, run)
    left = list(temporary(site).iterdir())  # passwords and keys, which the next run removes
    assert [path.stat().st_mode & 0o077 for path in left] == [0]
    release = found(site)
    assert release
    assert release.labels[OWNER_LABEL] == controller_id()
    again = site.apply({})
    assert again.plan.action == "repair-pending"
    assert again.ok, again.findings
    assert site.apply({}).plan.action == "no-op"


@pytest.mark.extended
def test_a_killed_upgrade(site: Site) -> None:
    assert site.apply({"settings": {"a": 1}}).ok
    pod = site.core.list_namespaced_pod(site.namespace, label_selector="app=one").items[0]
    run = start_run(site, hanging(), "1.1.0")
    assert wait_until(lambda: is_pending(site, "pending-upgrade"), 120)
    kill(site, run)
    again = site.apply({"settings": {"a": 2}}, "1.1.0")
    assert (again.plan.action, again.plan.rollback_to) == ("repair-pending", 1)
    assert again.ok, again.findings
    release = found(site)
    assert release
    assert (release.status, release.chart_version) == ("deployed", "1.1.0")
    after = site.core.list_namespaced_pod(site.namespace, label_selector="app=one").items
    assert [item.metadata.uid for item in after] == [pod.metadata.uid]  # it kept running


@pytest.mark.extended
def test_a_killed_removal(place: Site) -> None:
    """fluxcd/flux2#4614: helm upgrades no release whose removal was interrupted."""
    assert place.apply({}).ok
    hold(place, ["sandbox.gpufleet/held"])
    words = ["uninstall", "one", "--namespace", place.namespace, "--cascade", "foreground"]
    removal = subprocess.Popen(
        [place.helm, *words, "--wait"],
        env={**os.environ, "KUBECONFIG": str(place.cluster.kubeconfig)},
    )
    assert wait_until(lambda: is_pending(place, "uninstalling"), 120)
    removal.kill()
    removal.wait()
    hold(place, None)
    again = place.apply({})
    assert (again.plan.action, again.plan.rollback_to) == ("repair-pending", 1)
    assert again.ok, again.findings
    assert place.apply({}).plan.action == "no-op"


def hold(place: Site, finalizers: list[str] | None) -> None:
    """Set what keeps the deployment from being deleted."""
    body = {"metadata": {"finalizers": finalizers}}
    place.apps.patch_namespaced_deployment("one", place.namespace, body)


@pytest.mark.extended
def test_a_pending_release_of_another_user_is_left_alone(place: Site) -> None:
    assert place.apply({}).ok
    run = start_run(place, hanging())
    assert wait_until(lambda: is_pending(place, "pending-upgrade"), 120)
    kill(place, run)
    secret = f"sh.helm.release.v1.one.v{found(place).revision}"  # type: ignore[union-attr]
    label = {"metadata": {"labels": {OWNER_LABEL: None}}}
    place.core.patch_namespaced_secret(secret, place.namespace, label)
    busy = place.apply({})
    assert busy.plan.action == "blocked"
    assert "has been pending-upgrade for" in busy.finding("GF832").message
    opened = place.open()
    opened.controller = type(opened.controller)(
        "me", opened.controller.now + 16 * 60, opened.controller.helm
    )
    assert opened.plan(place.release({}, adopt=True)).action == "repair-pending"


def test_the_helm_of_a_killed_run_ends_with_it(place: Site) -> None:
    run = start_run(place, hanging())
    assert wait_until(lambda: is_pending(place, "pending-install"), 120)
    run.kill()
    run.communicate()
    assert wait_until(lambda: is_pending(place, "failed"), 15)
    again = place.apply({})
    assert again.plan.action == "repair-failed"
    assert again.ok, again.findings


@pytest.mark.extended
@pytest.mark.parametrize("what", ["install", "upgrade"])
def test_killed_at_random_points(place: Site, what: str) -> None:
    """Ten runs, each killed at another point; after each kill the next run converges."""
    rng = random.Random(f"{what}-{place.cluster.version}")
    took = measured(place)
    seen = []
    for attempt in range(10):
        place.name = "one"
        version = f"1.{attempt}.0"
        if what == "upgrade" and attempt == 0:
            assert place.apply({"daemonset": {"enabled": True}}, "0.9.0").ok
        began = time.monotonic()
        run = start_run(place, BOTH, version)
        # one in each tenth of a run, and slightly beyond: a run may be slower than measured
        late = wait_until(partial(has_ended, run), (attempt + rng.random()) / 10 * 1.2 * took)
        if late:  # the machine is faster than during the measured run
            took = time.monotonic() - began
        kill(place, run)
        again = place.apply(BOTH, version)
        seen.append(again.plan.action)
        if not late and attempt >= 4 and len(set(seen)) == 1:
            took *= 1.6
        assert again.ok, (attempt, again.findings, again.lines)
        release = found(place)
        assert release
        assert (release.status, release.chart_version) == ("deployed", version)
        assert place.apply(BOTH, version).plan.action == "no-op"
        if what == "install":
            uninstall(place)
    print(f"actions after the kills: {', '.join(seen)}")
    assert len(set(seen)) > 1, "every kill left the same state: they were not spread"


def measured(place: Site) -> float:
    """Seconds of a run that is not killed."""
    began = time.monotonic()
    run = start_run(place, BOTH)
    output, _ = run.communicate(timeout=900)
    assert run.returncode == 0, output
    took = time.monotonic() - began
    uninstall(place)
    return took


def uninstall(place: Site) -> None:
    words = [place.helm, "uninstall", "one", "-n", place.namespace]
    environment = {**os.environ, "KUBECONFIG": str(place.cluster.kubeconfig)}
    subprocess.run(words, check=True, env=environment, capture_output=True)
