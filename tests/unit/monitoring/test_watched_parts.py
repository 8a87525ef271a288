"""The parts of a control plane that Prometheus watches, on clusters of each kind.

The pods are written as the API shows them on clusters of that kind. Sources: for kubeadm and
kube-proxy the programs of 1.36.3; https://github.com/prometheus-community/helm-charts/issues/4924,
https://github.com/prometheus-operator/kube-prometheus/issues/718 (no pods on managed control
planes and k3s); the others by their test.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.facts import ClusterFacts, ServerVersion
from gpufleet.kube.system_pods import config_maps, parse_system_pods
from gpufleet.monitoring.control_plane import control_plane_values
from tests.unit.monitoring.control_planes import (
    DNS,
    FIRST,
    GKE,
    PROXY,
    RKE2,
    kubeadm,
    pod,
    proxy_config,
)

PARTS = ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy", "coreDns")


def watched(
    pods: list[dict[str, Any]],
    configs: dict[str, Any] | None = None,
    wanted: dict[str, Any] | None = None,
    minor: int = 36,
) -> tuple[set[str], set[str]]:
    """The watched parts, and the parts that the finding names."""
    found = parse_system_pods(pods, configs or {})
    facts = ClusterFacts("test", ServerVersion(1, minor), system_pods=found)
    values, findings = control_plane_values(facts, wanted or {})
    on = {part for part in PARTS if values.get(part, {}).get("enabled", True)}
    on |= {part for part, each in values.items() if each["enabled"]}
    said = findings[0].message.split("given: ")[1].split(". kube")[0] if findings else ""
    return on, set(said.split(", ")) - {""}


def test_kubeadm_as_it_is() -> None:
    pods = kubeadm("127.0.0.1", "http://127.0.0.1:2381")
    on, closed = watched(pods, {"kube-proxy": proxy_config("")})
    assert on == {"coreDns"}
    assert closed == set(PARTS) - {"coreDns"}


@pytest.mark.parametrize(
    ("address", "url"),
    [("0.0.0.0", "http://0.0.0.0:2381"), ("::", "http://[::]:2381"),
     ("192.0.2.1", "http://127.0.0.1:2381,http://192.0.2.1:2381")],
)  # fmt: skip
def test_clusters_that_gpufleet_created_are_watched(address: str, url: str) -> None:
    proxy = f"[{address}]:10249" if ":" in address else f"{address}:10249"
    assert config_maps(kubeadm(address, url)) == ["kube-proxy"]
    on, closed = watched(kubeadm(address, url), {"kube-proxy": proxy_config(proxy)})
    assert (on, closed) == (set(PARTS), set())


def test_one_control_plane_of_several_that_listens_on_loopback() -> None:
    """The part is not watched, because its alert would fire."""
    open_, closed = kubeadm("0.0.0.0", "http://0.0.0.0:2381"), kubeadm("127.0.0.1", "")
    on, said = watched([*open_, *closed[:1]], {"kube-proxy": proxy_config("0.0.0.0")})
    assert on == set(PARTS) - {"kubeControllerManager"}
    assert said == {"kubeControllerManager"}


def test_k3s_has_no_pods_but_dns() -> None:
    assert watched([pod(DNS, ports=(53, 9153))]) == ({"coreDns"}, set())


def test_eks() -> None:
    """kube-proxy by the ConfigMap of its add-on: 127.0.0.1 in older ones, 0.0.0.0 in newer.
    https://github.com/aws/containers-roadmap/issues/657"""
    pods = [
        pod(PROXY, "kube-proxy", "--v=2", "--config=/var/lib/kube-proxy-config/config",
            config="kube-proxy-config"),
        pod(DNS, ports=(53, 9153)),
    ]  # fmt: skip
    on, closed = watched(pods, {"kube-proxy-config": proxy_config("127.0.0.1:10249")})
    assert (on, closed) == ({"coreDns"}, {"kubeProxy"})
    on, closed = watched(pods, {"kube-proxy-config": proxy_config("0.0.0.0:10249")})
    assert (on, closed) == ({"coreDns", "kubeProxy"}, set())


def test_gke() -> None:
    """kube-dns under CoreDNS' label, without port 9153; kube-proxy under another label."""
    assert watched(GKE) == ({"kubeDns"}, set())


def test_rke2() -> None:
    """Static pods under kubeadm's labels: etcd by a file on the host, the others on loopback.
    https://docs.rke2.io/reference/server_config"""
    on, closed = watched(RKE2)
    assert on == {"coreDns"}
    assert closed == {"kubeControllerManager", "kubeScheduler", "kubeEtcd"}


def test_talos() -> None:
    """No pod of etcd; kube-proxy with arguments, without a file.
    https://docs.siderolabs.com/kubernetes-guides/monitoring-and-observability/etcd-metrics"""
    proxy = ("/usr/local/bin/kube-proxy", "--cluster-cidr=10.244.0.0/16", "--proxy-mode=nftables")
    pods = [
        pod({**FIRST, "k8s-app": "kube-controller-manager"}, "/x", "--bind-address=0.0.0.0"),
        pod({"k8s-app": "kube-scheduler"}, "kube-scheduler", "--bind-address=127.0.0.1"),
        pod(PROXY, *proxy),
    ]
    assert watched(pods) == ({"kubeControllerManager"}, {"kubeProxy"})
    pods[-1] = pod(PROXY, *proxy, "--metrics-bind-address", "0.0.0.0:10249")
    assert watched(pods) == ({"kubeControllerManager", "kubeProxy"}, set())


def test_cilium_in_place_of_kube_proxy() -> None:
    pods = kubeadm("0.0.0.0", "http://0.0.0.0:2381")
    cilium = pod({"k8s-app": "cilium"}, "cilium-agent", "--config-dir=/tmp/cilium/config-map")
    on, closed = watched([*pods[:3], pods[-1], cilium])
    assert (on, closed) == (set(PARTS) - {"kubeProxy"}, set())


@pytest.mark.parametrize(
    "own",
    [
        {"enabled": True},
        {"endpoints": ["192.0.2.1"]},
        {"service": {"selector": {"k8s-app": "etcd-manager-main"}}},
    ],
)
def test_what_a_user_says_about_a_part_wins(own: dict[str, Any]) -> None:
    on, closed = watched([], wanted={"kubeEtcd": own})
    assert (on, closed) == ({"kubeEtcd"}, set())


def test_other_values_of_a_part_do_not_switch_it_on() -> None:
    on, _ = watched([], wanted={"kubeEtcd": {"serviceMonitor": {"interval": "1m"}}})
    assert on == set()


@pytest.mark.parametrize(
    ("command", "open_"),
    [
        (("--secure-port=0",), False),
        (("--secure-port", "10300"), False),
        (("--bind-address=localhost",), False),
        (("--bind-address=::1",), False),
        (("--bind-address=127.0.0.1", "--bind-address=0.0.0.0"), True),
        ((), True),
        (("/bin/sh", "-c", "exec kube-controller-manager --bind-address=127.0.0.1 2>&1"), False),
        (("--bind-address=http://[bad",), False),
    ],
)
def test_addresses_in_commands(command: tuple[str, ...], open_: bool) -> None:
    on, _ = watched([pod(FIRST, *command)])
    assert on == ({"kubeControllerManager"} if open_ else set())


def test_old_clusters_where_the_chart_scrapes_the_insecure_port() -> None:
    """kubeadm closes the insecure port with --port=0."""
    on, closed = watched(kubeadm("0.0.0.0", "http://0.0.0.0:2381"), minor=20)
    assert on == {"kubeEtcd", "coreDns"}
    assert closed == {"kubeProxy"}  # its ConfigMap may not be read


def test_pods_elsewhere_and_ended_ones_do_not_count() -> None:
    there = pod(FIRST, "x", "--bind-address=127.0.0.1", status={"phase": "Failed"})
    other = pod(FIRST, "x", "--bind-address=127.0.0.1")
    other["metadata"]["namespace"] = "vcluster"
    good = pod(FIRST, "x", "--bind-address=0.0.0.0")
    assert watched([there, other, good])[0] == {"kubeControllerManager"}


@pytest.mark.parametrize("text", ["{", "[]", "kind: 7", "kind: KubeProxyConfiguration\nx: &a [*a]"])
def test_config_maps_that_are_no_configuration(text: str) -> None:
    pods = kubeadm("0.0.0.0", "http://0.0.0.0:2381")
    assert "kubeProxy" in watched(pods, {"kube-proxy": {"data": {"config.conf": text}}})[1]


def test_pods_with_one_command_are_one() -> None:
    assert len(parse_system_pods([pod(PROXY, "kube-proxy")] * 5000, {})) == 1
