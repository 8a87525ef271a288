"""Faults while hosts join: each is reported, other hosts continue, the next run completes the
join."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from deploying import PYINFRA, ROOT, Outcome

from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.kubernetes.cluster import prepare
from gpufleet_sandbox.waiting import wait_until
from tests.naming import RUN

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "If packages, images, hosts, the API or a node go away during `cluster create`, the "
        "next run completes it.",
        level=3,
    ),
]

HOSTS = ("ubuntu2404", "ubuntu2404-2", "debian12")  # the first controls
PLANE, FIRST, SECOND = HOSTS
GPUFLEET = [sys.executable, "-c", "from gpufleet.cli import main; main(prog_name='gpufleet')"]
HOME = "/var/lib/gpufleet"
BEGUN, JOINED = f"test -e {HOME}/kubernetes.begun", f"test -e {HOME}/kubernetes.joined"
SECONDS = 600
SEED = 20261125
ROUNDS, KILLS = 4, (3, 4, 4, 3)  # with the 6 of test_kubeadm.py: 20 of creations
INVENTORY = """\
import json

from gpufleet_sandbox.inventory import cluster_data, nodes

DATA = json.loads({data!r})
found = dict(nodes({sandbox!r}))
cluster = cluster_data({sandbox!r})
cluster["kubernetes_kubelet"] |= {{"failSwapOn": True}}
gpu_nodes = [(name, {{**found[name], **cluster, **DATA}}) for name in {hosts!r}]
control_plane = [{plane!r}]
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Hosts that become a cluster without drivers, which would take longer than all the rest."""

    box: Sandbox
    folder: Path

    def host(self, name: str) -> Host:
        return self.box.host(name)

    @property
    def kubeconfig(self) -> Path:
        return self.box.folder / "kubeconfig"

    def inventory(self, plane: str = PLANE) -> Path:
        path = self.folder / f"{plane}.py"
        data = {"driver_enabled": False, "toolkit_enabled": False}
        data["kubernetes_control_plane_pods"] = True
        path.write_text(
            INVENTORY.format(
                data=json.dumps(data),
                sandbox=self.box.name, hosts=HOSTS, plane=plane,
            )
        )  # fmt: skip
        return path

    def apply(self, deploy: str = "gpu_node", at: Callable[[], None] = lambda: None) -> Outcome:
        """Run a deploy on all hosts; `at` is called while it runs."""
        report = self.folder / f"{time.monotonic_ns()}.json"
        words = [str(PYINFRA), "-y", str(self.inventory()), f"deploys/{deploy}.py"]
        environment = {**os.environ, "GPUFLEET_REPORT": str(report)}
        with (self.folder / "output").open("w+") as output:
            run = subprocess.Popen(
                words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
            at()
            status = run.wait(1800)
            output.seek(0)
            text = output.read()
        assert report.exists(), text
        return Outcome(status, text, json.loads(report.read_text())["hosts"])

    def cluster(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        words = [*GPUFLEET, "cluster", verb, str(self.inventory()), *options]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=1800)

    def kill(self, verb: str, seconds: float) -> None:
        """Kill a run and all of its processes after some seconds."""
        words = [*GPUFLEET, "cluster", verb, str(self.inventory()), "--yes"]
        words += ["--ignore-gpu-pods"] if verb == "destroy" else []
        with subprocess.Popen(
            words, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)

    def kubectl(self, words: str, *, check: bool = True) -> str:
        command = f"kubectl --request-timeout=20s --kubeconfig /etc/kubernetes/admin.conf {words}"
        return self.host(PLANE).run(command, check=check).stdout.strip()

    def is_whole(self) -> bool:
        return self.cluster("status").returncode == 0

    def assert_converges(self) -> None:
        """One more run ends what was begun."""
        done = self.apply()
        assert not done.failures(), done.output
        assert wait_until(self.is_whole, SECONDS), self.cluster("status").stdout

    def forget(self, name: str) -> None:
        """Take a host out of the cluster by hand: gpufleet's notes stay."""
        self.host(name).run("kubeadm reset -f --cri-socket unix:///run/containerd/containerd.sock")
        self.kubectl(f"delete node {name} --ignore-not-found")

    @contextmanager
    def serving(self, *faults: dict[str, str]) -> Iterator[None]:
        """The mirror of packages and images has these faults."""
        file = self.host("mirror").scenario / "faults.json"
        file.write_text(json.dumps(faults))
        try:
            yield
        finally:
            file.unlink()


@pytest.fixture(scope="module")
def site(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    box = Sandbox(f"{RUN}-faults-{worker_id}", progress=print, images="imitation")
    box.down()
    prepare("1.36", print)
    box.up(["ubuntu2404"], copies=2)
    box.up(["debian12"])
    yield Site(box, tmp_path_factory.mktemp("faults"))
    if os.environ.get("GPUFLEET_KEEP_SANDBOX") != "1":
        box.down()


def is_so(host: Host, test: str) -> bool:
    return host.run(test, check=False).returncode == 0


def once(host: Host, test: str, then: Callable[[], object]) -> Callable[[], None]:
    """Do something as soon as a test on a host succeeds."""

    def act() -> None:
        assert wait_until(lambda: is_so(host, test), SECONDS), test
        then()

    return act


def kinds(done: Outcome) -> dict[str, set[str]]:
    return {name: done.codes(name) - {"GF933"} for name in done.report}


def remedied(done: Outcome, host: str) -> None:
    """Whatever stopped a host has a remedy in the report or in its error."""
    part = done.report[host]
    found = [each["remedy"] for each in part["findings"] if each["severity"] == "blocker"]
    assert found or any(len(error.splitlines()) > 1 for error in part["errors"]), part


PLANTED = {
    "GF937": ("systemd-run -q --unit=taken systemd-socket-activate -l 10250 sleep 1",
              "systemctl stop taken"),
    "GF936": ("printf 'Filename Type\\n/dev/sda2 partition\\n' >/tmp/swaps; "
              "mount --bind /tmp/swaps /proc/swaps", "umount /proc/swaps"),
    "GF291": ("systemctl stop containerd", "systemctl start containerd"),
    "GF940": ("mkdir -p /etc/kubernetes/pki; touch /etc/kubernetes/pki/ca.crt",
              "rm -r /etc/kubernetes"),
    "GF939": ("hostname >/tmp/name; echo gpu_02 >/proc/sys/kernel/hostname",
              "cat /tmp/name >/proc/sys/kernel/hostname"),
}  # fmt: skip
FOREIGN = "[Service]\nExecStart=/bin/sleep infinity\n"


def test_gates_stop_hosts_before_anything_is_changed(site: Site) -> None:
    first, second = site.host(FIRST), site.host(SECOND)
    second.put("/etc/systemd/system/kubelet.service", FOREIGN)
    second.run("systemctl daemon-reload; systemctl start kubelet; cp /etc/machine-id /tmp/id")
    second.put("/etc/machine-id", first.get("/etc/machine-id"))
    try:
        for plant, _ in PLANTED.values():
            first.run(plant)
        with second.fault("clock-skew"):
            done = site.apply("preflight")
    finally:
        for _, remove in PLANTED.values():
            first.run(remove, check=False)
        second.run("systemctl stop kubelet; rm /etc/systemd/system/kubelet.service")
        second.run("systemctl daemon-reload; cp /tmp/id /etc/machine-id")
    found = kinds(done)
    assert found[PLANE] == set()
    assert found[FIRST] - {"GF950"} == set(PLANTED), done.output
    assert found[SECOND] - {"GF950"} == {"GF541", "GF941", "GF953"}, done.output
    assert "GF950" in found[FIRST] | found[SECOND]
    assert [name for name in HOSTS if site.host(name).run(BEGUN, check=False).returncode == 0] == []


def test_packages_are_gone(site: Site) -> None:
    with site.serving({"mode": "404", "path": "core:"}):
        done = site.apply()
    for name in HOSTS:
        assert {code for code in kinds(done)[name] if code.startswith("GF3")}, done.output
        remedied(done, name)


def test_packages_go_away_in_the_middle(site: Site) -> None:
    mirror, plane = site.host("mirror"), site.host(PLANE)
    trusted = "ls /etc/apt/sources.list.d/*kubernetes*"
    done = site.apply(at=once(plane, trusted, lambda: mirror.set_fault("down", True)))
    mirror.set_fault("down", False)
    assert set(done.failures()) == set(HOSTS)
    for name in HOSTS:
        assert kinds(done)[name], done.output
        remedied(done, name)


def test_images_are_gone_before_the_control_plane_starts(site: Site) -> None:
    with site.serving({"mode": "404", "path": "^/v2/"}):
        done = site.apply()
    assert kinds(done) == {PLANE: {"GF946"}, FIRST: {"GF944"}, SECOND: {"GF944"}}
    assert "ImagePull" in done.output
    remedied(done, PLANE)


def test_an_image_of_the_network_is_missing(site: Site) -> None:
    """Hosts join but are not Ready. The error names the image that their pods wait for."""
    with site.serving({"mode": "404", "path": "^/v2/ghcr.io/.*flannel"}):
        done = site.apply()
    assert kinds(done) == {name: {"GF949"} for name in HOSTS}
    for name in HOSTS:
        assert "flannel" in "\n".join(done.report[name]["errors"]), done.report[name]
    site.assert_converges()


def test_a_host_is_lost_and_a_kubelet_does_not_start_during_a_join(site: Site) -> None:
    """Both were reset by hand before."""
    first, second = site.host(FIRST), site.host(SECOND)
    site.forget(FIRST)
    site.forget(SECOND)
    broken = "/etc/systemd/system/kubelet.service.d/zz.conf"
    second.put(broken, "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --no-such-flag\n")
    second.run("systemctl daemon-reload")
    try:
        done = site.apply(at=once(first, BEGUN, lambda: first.set_fault("frozen", True)))
    finally:
        first.set_fault("frozen", False)
        second.run(f"rm {broken}; systemctl daemon-reload")
    assert done.failures() == [FIRST, SECOND], done.output
    assert "no response for" in done.output
    assert "GF946" in kinds(done)[SECOND]
    assert "unknown flag: --no-such-flag" in "\n".join(done.report[SECOND]["errors"])
    remedied(done, FIRST)
    site.assert_converges()


def test_the_control_plane_reboots_and_a_disk_is_full_during_a_join(site: Site) -> None:
    plane, first, second = map(site.host, HOSTS)
    site.forget(FIRST)
    site.forget(SECOND)

    def disturb() -> None:
        second.set_fault("disk-full", True)
        plane.reboot(wait=False)

    try:
        done = site.apply(at=once(first, BEGUN, disturb))
    finally:
        second.set_fault("disk-full", False)
        plane.wait_started(seconds=SECONDS)
    for name in done.failures():
        assert kinds(done)[name], done.output
        remedied(done, name)
    assert wait_until(lambda: site.kubectl("get --raw /readyz", check=False) == "ok", SECONDS)
    site.assert_converges()


def test_a_node_that_was_deleted_is_named(site: Site) -> None:
    site.kubectl(f"delete node {SECOND}")
    done = site.cluster("create", "--yes")
    assert done.returncode == 1
    assert "GF295 The cluster has 2 nodes for 3 hosts" in done.stdout
    assert SECOND in done.stdout
    site.host(SECOND).run("systemctl restart kubelet")
    assert wait_until(site.is_whole, SECONDS), site.cluster("status").stdout


def test_a_kubeconfig_of_another_cluster_is_in_the_way(site: Site) -> None:
    own = site.kubeconfig.read_text()
    other = own.replace("https://", "https://10.255.255.1:1/#")
    site.kubeconfig.write_text(other.replace("certificate-authority-data: ", "x: "))
    try:
        done = site.cluster("destroy", "--yes")
        assert (done.returncode, "GF956" in done.stderr) == (1, True), done.stderr
    finally:
        site.kubeconfig.unlink()
    done = site.apply()
    assert not done.failures(), done.output
    assert site.kubeconfig.read_text() == own


def test_the_api_is_away_while_a_host_joins(site: Site) -> None:
    plane, manifest = site.host(PLANE), "/etc/kubernetes/manifests/kube-apiserver.yaml"
    site.forget(SECOND)
    plane.run(f"mv {manifest} /root/")
    assert wait_until(lambda: site.kubectl("get --raw /readyz", check=False) != "ok", SECONDS)
    done = site.apply()
    assert kinds(done) == {PLANE: set(), FIRST: set(), SECOND: {"GF294"}}, done.output
    remedied(done, SECOND)
    status = site.cluster("status")
    assert (status.returncode, status.stderr[:2]) == (1, "GF")
    refused = site.cluster("destroy", "--yes")
    assert (refused.returncode, "GF956" in refused.stderr) == (1, True), refused.stderr
    plane.run(f"mv /root/kube-apiserver.yaml {manifest}")
    assert wait_until(lambda: site.kubectl("get --raw /readyz", check=False) == "ok", SECONDS)


def test_two_runs_at_once(site: Site) -> None:
    """One run continues. The other has nothing to do, or is refused and changes nothing."""
    others: list[subprocess.Popen[bytes]] = []
    words = [str(PYINFRA), "-y", str(site.inventory()), "deploys/gpu_node.py"]

    def second() -> None:
        others.append(subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL))

    site.forget(SECOND)
    done = site.apply(at=second)
    statuses = [done.returncode, *(each.wait(SECONDS) for each in others)]
    assert 0 in statuses, done.output
    if done.failures():
        assert kinds(done)[SECOND] & {"GF508", "GF509"}, done.output  # the other is at work, or was
        assert done.changes()[SECOND] == 0, done.output
    assert wait_until(site.is_whole, SECONDS), site.cluster("status").stdout


def test_a_host_is_away_while_its_cluster_is_destroyed(site: Site) -> None:
    report = site.folder / "destroyed.json"
    with site.host(SECOND).fault("unreachable"):
        done = site.cluster("destroy", "--yes", "--json", str(report))
    assert done.returncode == 1
    (phase,) = json.loads(report.read_text())["phases"]
    hosts = phase["report"]["hosts"]
    assert {name: host["failed"] for name, host in hosts.items()} == {
        PLANE: False, FIRST: False, SECOND: True,
    }, hosts  # fmt: skip
    assert not is_so(site.host(PLANE), "test -e /etc/kubernetes")
    blocked = site.apply("preflight")
    assert kinds(blocked) == {PLANE: set(), FIRST: set(), SECOND: {"GF290"}}, blocked.output
    refused = site.cluster("destroy", "--yes")
    assert f"These hosts are nodes: {SECOND}." in refused.stderr
    assert_destroyed(site)
    assert site.cluster("destroy", "--yes").returncode == 0


def assert_destroyed(site: Site) -> None:
    done = site.cluster("destroy", "--yes", "--ignore-gpu-pods")
    assert done.returncode == 0, done.stdout + done.stderr
    left = f"test -e /etc/kubernetes || test -e /var/lib/kubelet || ls {HOME}/kubernetes.*"
    assert [name for name in HOSTS if is_so(site.host(name), left)] == []
    assert not site.kubeconfig.exists()


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_rerun_continues_after_a_kill(site: Site, round_: int) -> None:
    """SIGKILL to the controller at random moments of creations, and of a destruction."""
    moments = random.Random(SEED + round_)
    for number in range(KILLS[round_]):
        site.kill("create", moments.uniform(3, 15 + 10 * number))
    done = site.cluster("create", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in HOSTS:
        secrets = f"ls {HOME}/incoming; grep -rlE '[a-z0-9]{{6}}[.][a-z0-9]{{16}}' {HOME} /tmp; :"
        assert site.host(name).output(secrets) == "", name
    site.kill("destroy", moments.uniform(2, 8))
    assert_destroyed(site)
