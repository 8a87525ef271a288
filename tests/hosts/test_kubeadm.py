"""Three bare hosts become a cluster, and hosts again: kubelets, network and pods are real."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from xml.etree import ElementTree

import pytest
from cluster_site import LEFT, MINORS, PHASES, SECONDS, Site, bare_hosts
from kubernetes import client
from kubernetes.stream import stream
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from gpufleet_sandbox.kubernetes.cluster import inventory
from gpufleet_sandbox.kubernetes.images import GPU_PROBE, PROBE
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.fake_charts import write_charts
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

HOSTS = ("ubuntu2404", "ubuntu2404-2", "debian12")  # H100, H100, L40S; the first controls
SCRAPED = {
    "http://{}:2381/metrics": "200",
    "http://{}:10249/metrics": "200",
    "https://{}:10257/metrics": "403",
    "https://{}:10259/metrics": "403",
}
KILLS = 6
SEED = 20261123
RULE = '-A INPUT -p tcp -m tcp --dport 9999 -m comment --comment "no -j KUBE-API" -j DROP'
WEB = "mkdir /www; hostname >/www/index.html; exec httpd -f -p 80 -h /www"


@dataclass(frozen=True)
class Trio(Site):
    """Three hosts, of two GPU models."""

    @property
    def hosts(self) -> list[Host]:
        return [self.box.host(name) for name in HOSTS]

    def create(self) -> dict[str, Any]:
        """Create the cluster; its JSON report."""
        report, junit = self.folder / "create.json", self.folder / "create.xml"
        done = self.run("create", "--yes", "--json", str(report), "--junit", str(junit))
        assert done.returncode == 0, done.stdout + done.stderr
        failures = ElementTree.parse(junit).getroot().iter("failure")
        assert not [failure.get("message") for failure in failures]
        found: dict[str, Any] = json.loads(report.read_text())
        return found

    def is_whole(self) -> bool:
        """Whether all nodes are Ready with their GPUs."""
        return sum(each["ready"] and each["gpus"] == 1 for each in self.members()) == len(HOSTS)


@pytest.fixture(scope="module", params=MINORS)
def site(
    worker_id: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Trio]:
    minor = str(request.param)
    name = f"{RUN}-kubeadm-{minor.replace('.', '')}-{worker_id}"
    folder = tmp_path_factory.mktemp("kubeadm")
    write_charts(folder / "charts")
    environment = {**os.environ, "GPUFLEET_SANDBOX": name, "GPUFLEET_CHARTS": f"{folder}/charts"}
    with bare_hosts(name, {"ubuntu2404": 2, "debian12": 1}, minor) as box:
        yield Trio(box, folder, inventory(), environment)


@pytest.fixture(scope="module")
def before(site: Trio) -> dict[str, dict[str, list[str]]]:
    """Snapshots of hosts with a user's iptables rule whose comment names a chain of Kubernetes."""
    for host in site.hosts:
        host.run(f"iptables {RULE}")
    return {host.name: snapshot(host, *LEFT) for host in site.hosts}


@pytest.fixture(scope="module")
def created(site: Trio, before: Any) -> dict[str, Any]:
    return site.create()


@pytest.mark.claim(
    "One command turns three bare hosts into a Kubernetes cluster (1.36 and 1.32) and verifies it.",
    level=3,
)
def test_bare_hosts_become_a_verified_cluster(site: Trio, created: dict[str, Any]) -> None:
    phases = {each["name"]: each["result"] for each in created["phases"]}
    assert phases == dict.fromkeys(PHASES, "passed")
    assert [each["name"] for each in site.members()] == sorted(HOSTS)
    assert all(each["ready"] and each["gpus"] == 1 for each in site.members())
    secret = site.kubeconfig.stat().st_mode & 0o777
    assert secret == 0o600


def test_a_second_run_changes_nothing(site: Trio, created: dict[str, Any]) -> None:
    again = site.create()
    for phase in (again["phases"][1], again["phases"][3]):
        statuses = {name: host["status"] for name, host in phase["report"]["hosts"].items()}
        assert set(statuses.values()) == {"converged"}, statuses


def test_nothing_of_the_join_is_left_on_the_hosts(site: Trio, created: dict[str, Any]) -> None:
    """Tokens live minutes, files with them moments."""
    secrets = site.core.list_namespaced_secret("kube-system").items
    tokens = [each for each in secrets if each.type == "bootstrap.kubernetes.io/token"]
    latest = datetime.now(timezone.utc) + timedelta(minutes=16)
    ends = [base64.b64decode(each.data["expiration"]).decode() for each in tokens]
    assert all(datetime.fromisoformat(end.replace("Z", "+00:00")) < latest for end in ends), ends
    for host in site.hosts:
        found = host.output(
            "ls /var/lib/gpufleet/incoming; grep -rlE '[a-z0-9]{6}[.][a-z0-9]{16}' "
            "/var/lib/gpufleet /etc/kubernetes /tmp /var/log/auth.log 2>/dev/null; :"
        )
        assert found == "", host.name


def test_the_control_plane_can_be_scraped_from_another_host(
    site: Trio, created: dict[str, Any]
) -> None:
    """Controller manager and scheduler ask for a token that may read metrics."""
    plane, worker = site.hosts[0], site.hosts[-1]
    codes = {
        url: worker.run(
            f"curl -sk -m 20 -o /dev/null -w '%{{http_code}}' {url.format(plane.address)}"
        ).stdout.strip()
        for url in SCRAPED
    }
    assert codes == SCRAPED


@pytest.mark.claim(
    "On that cluster a Deployment gets GPUs of both models, and hosts come back from a reboot.",
    level=3,
)
def test_a_deployment_gets_the_gpus_of_both_models(site: Trio, created: dict[str, Any]) -> None:
    deployment(site, "gpu", GPU_PROBE, "nvidia-smi -L; exec sleep 100000", len(HOSTS), gpus=1)
    pods = ready_pods(site, "gpu", len(HOSTS))
    assert {pod.spec.node_name for pod in pods} == set(HOSTS)
    logs = [site.core.read_namespaced_pod_log(pod.metadata.name, "default") for pod in pods]
    assert sum("H100" in log for log in logs) == 2
    assert sum("L40S" in log for log in logs) == 1
    assert [each["used"] for each in site.members()] == [1, 1, 1]


@pytest.mark.claim("`cluster destroy` refuses while pods use GPUs.", level=3)
def test_gpu_pods_stop_destroy(site: Trio, created: dict[str, Any]) -> None:
    done = site.run("destroy", "--yes")
    assert done.returncode == 1
    assert "GF955 3 pods use GPUs" in done.stderr
    site.apps.delete_namespaced_deployment("gpu", "default")
    assert wait_until(lambda: not pods_of(site, "gpu"), SECONDS)


def test_services_and_names_reach_across_nodes(site: Trio, created: dict[str, Any]) -> None:
    deployment(site, "web", PROBE, WEB, len(HOSTS), spread=True)
    deployment(site, "client", PROBE, "exec sleep 100000", len(HOSTS), spread=True)
    port = client.V1ServicePort(port=80)
    spec = client.V1ServiceSpec(selector={"app": "web"}, ports=[port])
    body = client.V1Service(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    site.core.create_namespaced_service("default", body)
    web = {pod.metadata.name for pod in ready_pods(site, "web", len(HOSTS))}
    for pod in ready_pods(site, "client", len(HOSTS)):
        name = pod.metadata.name
        found = wait_until(lambda name=name: set(answers(site, name)) == web, SECONDS)
        assert found, (pod.spec.node_name, answers(site, name), web)


def test_every_host_comes_back_from_a_reboot(site: Trio, created: dict[str, Any]) -> None:
    for name in reversed(HOSTS):
        site.box.host(name).reboot(seconds=SECONDS)
        assert wait_until(site.is_whole, SECONDS), (name, site.members())
    again = site.create()
    assert [each["result"] for each in again["phases"]] == ["passed"] * len(PHASES)


def test_destroy_leaves_the_hosts_as_before(
    site: Trio, created: dict[str, Any], before: dict[str, dict[str, list[str]]]
) -> None:
    done = site.run("destroy", "--yes", "--all", "--ignore-gpu-pods")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not site.kubeconfig.exists()
    found = {
        host.name: differences(before[host.name], snapshot(host, *LEFT)) for host in site.hosts
    }
    for changed in found.values():
        changed.pop("modules", None)  # nouveau returns with the next boot
    assert found == {name: {} for name in HOSTS}
    links = "ip -br link | grep -E 'cni0|flannel|veth'; iptables-save | grep -E 'KUBE|FLANNEL'; :"
    assert [host.output(links) for host in site.hosts] == [RULE] * len(HOSTS)
    again = site.run("destroy", "--yes")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.claim(
    "`cluster create` and `destroy` continue after a kill; no join token stays on a host.",
    level=3,
)
def test_a_rerun_continues_after_a_kill(site: Trio) -> None:
    """SIGKILL to the controller at random moments of a creation, then of a destruction."""
    moments = random.Random(SEED)
    for _ in range(KILLS):
        site.kill("create", moments.uniform(5, 60))
    assert [each["result"] for each in site.create()["phases"]] == ["passed"] * len(PHASES)
    site.kill("destroy", moments.uniform(2, 8))
    done = site.run("destroy", "--yes", "--ignore-gpu-pods")
    assert done.returncode == 0, done.stdout + done.stderr
    status = [host.run("test -e /etc/kubernetes", check=False).returncode for host in site.hosts]
    assert status == [1, 1, 1]


def answers(site: Trio, pod: str) -> list[str]:
    """The pods of the Service `web` that answer 10 requests of a pod, by their names."""
    script = (
        "for n in 0 1 2 3 4 5 6 7 8 9; do wget -qO- http://web.default.svc.cluster.local/; done"
    )
    done = stream(
        site.core.connect_get_namespaced_pod_exec, pod, "default",
        command=["/bin/sh", "-c", script], stdout=True, stderr=False, stdin=False, tty=False,
    )  # fmt: skip
    return str(done).split()


def deployment(
    site: Trio, name: str, image: str, script: str, replicas: int, gpus: int = 0, *,
    spread: bool = False,
) -> None:  # fmt: skip
    """Create a Deployment; `spread`: one pod on each node."""
    container: dict[str, Any] = {"name": name, "image": image, "command": ["/bin/sh", "-c", script]}
    spec: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 1}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
        spec["runtimeClassName"] = "nvidia"
    labels = {"app": name}
    if spread:
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": rule}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
    site.apps.create_namespaced_deployment("default", body)


def pods_of(site: Trio, name: str) -> list[Any]:
    found: list[Any] = site.core.list_namespaced_pod("default", label_selector=f"app={name}").items
    return found


def ready_pods(site: Trio, name: str, count: int) -> list[Any]:
    """The pods of a Deployment, once that many are Ready."""

    def ready() -> bool:
        return sum(_is_ready(pod) for pod in pods_of(site, name)) == count

    assert wait_until(ready, SECONDS), [pod.status for pod in pods_of(site, name)]
    return pods_of(site, name)


def _is_ready(pod: Any) -> bool:
    conditions = pod.status.conditions or ()
    return any(each.type == "Ready" and each.status == "True" for each in conditions)
