"""Three bare hosts become three control planes behind an address, and hosts again."""

from __future__ import annotations

import base64
import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cluster_site import LEFT, SECONDS, Site, bare_hosts
from forwarding import Forwarder, forwarder
from snapshots import differences, snapshot

from gpufleet.core.paths import shipped_path
from gpufleet_sandbox import Host
from gpufleet_sandbox.waiting import wait_until
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

HOSTS = ("ubuntu2404", "ubuntu2404-2", "ubuntu2404-3")
PYINFRA = [sys.executable, "-m", "pyinfra", "-y"]
KILLS = 3
SEED = 20261125
SECRET = "/var/lib/gpufleet/incoming"
INVENTORY = """
from gpufleet_sandbox.inventory import cluster_data, group_data, nodes

_nodes = nodes({name!r})
_data = {{**group_data(), **cluster_data({name!r}), "node_reboot": "if_needed"}}
gpu_nodes = (_nodes, {{**_data, "kubernetes_endpoint": {endpoint!r}}})
control_plane = _nodes
"""


@dataclass(frozen=True, kw_only=True)
class Planes(Site):
    """Control planes, and the address before them."""

    balancer: Forwarder

    @property
    def hosts(self) -> list[Host]:
        return [self.box.host(name) for name in HOSTS]

    def deploy(self, name: str, *limits: str) -> dict[str, Any]:
        """The report of a deploy, of these hosts alone; with the exit status."""
        report = self.folder / "deploy.json"
        report.unlink(missing_ok=True)
        words = [*PYINFRA, str(self.inventory), str(shipped_path("deploys") / f"{name}.py")]
        words += [word for host in limits for word in ("--limit", host)]
        done = self.command(words, GPUFLEET_REPORT=str(report))
        found: dict[str, Any] = json.loads(report.read_text())
        return {**found, "status": done.returncode, "output": done.stdout + done.stderr}

    def create(self) -> None:
        done = self.run("create", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr

    def nodes(self) -> dict[str, bool]:
        """Nodes as `gpufleet cluster status` has them: whether they are Ready."""
        found = self.members()
        assert all(each["part"] == "control-plane" for each in found)
        return {each["name"]: each["ready"] for each in found}

    def etcds(self) -> list[str]:
        """Hosts whose member of etcd is Ready, by the API."""
        pods = self.core.list_namespaced_pod("kube-system", label_selector="component=etcd").items
        conditions = {pod.spec.node_name: pod.status.conditions or () for pod in pods}
        return sorted(
            name
            for name, found in conditions.items()
            if any(each.type == "Ready" and each.status == "True" for each in found)
        )

    def is_whole(self) -> bool:
        return self.nodes() == dict.fromkeys(HOSTS, True) and self.etcds() == list(HOSTS)

    def etcd_members(self, host: Host) -> int:
        """The number of members that the etcd API of a host reports."""
        pki = "/etc/kubernetes/pki/etcd"
        keys = f"--cert {pki}/server.crt --key {pki}/server.key --cacert {pki}/ca.crt"
        url = "https://127.0.0.1:2379/v3/cluster/member/list"
        found = json.loads(host.output(f"curl -sS {keys} -X POST -d '{{}}' {url}"))
        return len(found["members"])


@pytest.fixture(scope="module")
def site(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planes]:
    name = f"{RUN}-planes-{worker_id}"
    folder = tmp_path_factory.mktemp("planes")
    with (
        bare_hosts(name, {HOSTS[0]: len(HOSTS)}) as box,
        forwarder(box.host(HOSTS[0]).gateway) as balancer,
    ):
        balancer.targets = [(box.host(host).address, 6443) for host in HOSTS]
        inventory = folder / "inventory.py"
        inventory.write_text(INVENTORY.format(name=name, endpoint=balancer.endpoint))
        yield Planes(box, folder, inventory, balancer=balancer)


@pytest.fixture(scope="module")
def before(site: Planes) -> dict[str, dict[str, list[str]]]:
    return {host.name: snapshot(host, *LEFT) for host in site.hosts}


@pytest.fixture(scope="module")
def created(site: Planes, before: Any) -> None:
    site.create()


@pytest.mark.claim(
    "One command turns three bare hosts into control planes behind an address of the user.",
    level=3,
)
def test_three_hosts_become_control_planes_behind_the_address(site: Planes, created: None) -> None:
    assert wait_until(site.is_whole, SECONDS), (site.nodes(), site.etcds())
    assert [site.etcd_members(host) for host in site.hosts] == [3, 3, 3]
    access = site.kubeconfig.read_text()
    assert re.findall("server: (.*)", access) == [f"https://{site.balancer.endpoint}"]


def test_a_second_run_changes_nothing_at_one_command_per_host(site: Planes, created: None) -> None:
    sessions = [len(host.sessions()) for host in site.hosts]
    again = site.deploy("gpu_node")
    assert {host["status"] for host in again["hosts"].values()} == {"converged"}, again["output"]
    assert [len(host.sessions()) for host in site.hosts] == [count + 1 for count in sessions]


def test_the_certificates_of_the_joins_are_gone(site: Planes, created: None) -> None:
    secrets = site.core.list_namespaced_secret("kube-system").items
    assert "kubeadm-certs" not in {each.metadata.name for each in secrets}
    usages = [
        each.metadata.name
        for each in secrets
        if each.type == "bootstrap.kubernetes.io/token"
        and b"Proxy" in client_data(each, "description")
    ]
    assert usages == []
    assert [host.output(f"ls {SECRET}") for host in site.hosts] == [""] * len(HOSTS)


@pytest.mark.claim(
    "The API answers while one of three control planes is lost.",
    level=3,
)
def test_the_api_answers_without_one_of_them(site: Planes, created: None) -> None:
    """While the first control plane is down, another one cannot be removed."""
    lost, _, other = site.hosts
    lost.engine("kill", lost.state.container)
    try:
        assert wait_until(lambda: set(site.nodes()) == set(HOSTS), SECONDS)
        assert wait_until(lambda: site.nodes().get(lost.name) is False, SECONDS)
        report = site.deploy("destroy_cluster", other.name)
        codes = report["output"]
        assert report["status"] != 0
        assert "GF086" in codes
        assert "1 of 2 other control planes are Ready, 2 have to be" in codes
        assert site.etcd_members(other) == 3
    finally:
        lost.engine("start", lost.state.container)
        lost.wait_started(seconds=120)
    assert wait_until(site.is_whole, SECONDS), (site.nodes(), site.etcds())


def test_the_first_leaves_and_joins_the_others(site: Planes, created: None) -> None:
    """It begins no second cluster."""
    first, second, _ = site.hosts
    left = site.deploy("destroy_cluster", first.name)
    assert left["status"] == 0, left["output"]
    assert set(site.nodes()) == set(HOSTS) - {first.name}
    assert site.etcd_members(second) == 2
    assert site.kubeconfig.exists()
    site.create()
    assert wait_until(site.is_whole, SECONDS), (site.nodes(), site.etcds())
    assert [site.etcd_members(host) for host in site.hosts] == [3, 3, 3]


def test_another_endpoint_is_refused(site: Planes, created: None) -> None:
    text = site.inventory.read_text()
    try:
        site.inventory.write_text(text.replace(site.balancer.endpoint, "other.example:6443"))
        done = site.run("create", "--yes")
    finally:
        site.inventory.write_text(text)
    assert done.returncode != 0
    assert "GF082" in done.stdout + done.stderr


@pytest.mark.claim(
    "`cluster destroy` of three control planes leaves packages and files as before.",
    level=3,
)
def test_destroy_leaves_the_hosts_as_before(
    site: Planes, created: None, before: dict[str, dict[str, list[str]]]
) -> None:
    done = site.run("destroy", "--yes", "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not site.kubeconfig.exists()
    found = {
        host.name: differences(before[host.name], snapshot(host, *LEFT)) for host in site.hosts
    }
    for changed in found.values():
        changed.pop("modules", None)  # nouveau returns with the next boot
    assert found == {name: {} for name in HOSTS}


def test_a_rerun_continues_after_a_kill(site: Planes, before: Any) -> None:
    """SIGKILL to the controller at random moments, of joins above all."""
    moments = random.Random(SEED)
    for _ in range(KILLS):
        site.kill("create", moments.uniform(30, 90))
    site.create()
    assert wait_until(site.is_whole, SECONDS), (site.nodes(), site.etcds())
    assert [site.etcd_members(host) for host in site.hosts] == [3, 3, 3]
    done = site.run("destroy", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr


def client_data(secret: Any, key: str) -> bytes:
    """A value of a Secret, decoded."""
    return base64.b64decode((secret.data or {}).get(key, ""))
