"""Control planes of each kind: pods of kube-system as the API shows them, and their open ports.

Sources: for kubeadm and kube-proxy the programs of 1.36.3; k3s and managed control planes have no
pods, https://github.com/prometheus-operator/kube-prometheus/issues/718.
"""

from __future__ import annotations

from typing import Any

FIRST = {"component": "kube-controller-manager"}
PROXY = {"k8s-app": "kube-proxy"}
DNS = {"k8s-app": "kube-dns"}


def pod(
    labels: dict[str, str],
    *command: str,
    ports: tuple[int, ...] = (),
    config: str = "",
    **more: Any,
) -> dict[str, Any]:
    container = {"command": list(command), "ports": [{"containerPort": port} for port in ports]}
    volumes = [{"name": "config", "configMap": {"name": config}}] if config else []
    return {
        "metadata": {"namespace": "kube-system", "labels": labels, "name": "any"},
        "spec": {"containers": [container], "volumes": volumes},
        "status": {"phase": "Running"},
        **more,
    }


def proxy_config(address: str) -> dict[str, Any]:
    text = (
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
        f"metricsBindAddress: {address!r}\nmode: iptables\n"
    )
    return {"data": {"config.conf": text, "kubeconfig.conf": "kind: Config\nclusters: []\n"}}


def kubeadm(address: str, urls: str) -> list[dict[str, Any]]:
    """kubeadm's static pods, kube-proxy and CoreDNS."""
    return [
        pod(FIRST, "kube-controller-manager", "--leader-elect=true", f"--bind-address={address}"),
        pod({"component": "kube-scheduler"}, "kube-scheduler", f"--bind-address={address}"),
        pod({"component": "etcd"}, "etcd", f"--listen-metrics-urls={urls}"),
        pod(PROXY, "/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf",
            "--hostname-override=$(NODE_NAME)", config="kube-proxy"),
        pod(DNS, "/coredns", ports=(53, 53, 9153)),
    ]  # fmt: skip


def opened(pods: list[dict[str, Any]], *ports: int) -> list[dict[str, Any]]:
    """The pods, which a Prometheus reaches at these ports."""
    return [{**each, "opened": ports} for each in pods]


LOOPBACK = kubeadm("127.0.0.1", "http://127.0.0.1:2381")
OPEN = kubeadm("0.0.0.0", "http://0.0.0.0:2381")
MADE = (10257, 10259, 2381, 10249, 9153)
COREDNS = [pod(DNS, ports=(53, 9153))]
RKE2 = [
    pod(FIRST, "kube-controller-manager", "--bind-address=127.0.0.1", "--secure-port=10257"),
    pod({"component": "kube-scheduler"}, "kube-scheduler", "--bind-address=127.0.0.1"),
    pod({"component": "etcd"}, "etcd", "--config-file=/var/lib/rancher/rke2/etcd"),
    pod({"component": "kube-proxy"}, "kube-proxy", "--healthz-bind-address=127.0.0.1"),
    *COREDNS,
]
GKE = [
    pod({"component": "kube-proxy", "tier": "node"}, "/bin/sh", "-c",
        "exec kube-proxy --v=2 --metrics-bind-address=0.0.0.0 1>>/var/log/kube-proxy.log 2>&1"),
    pod(DNS, ports=(10053, 10055, 10054)),
]  # fmt: skip
# kind of cluster -> pods with open ports; address of kube-proxy's metrics in its ConfigMap
CLUSTERS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "kubeadm": (opened(LOOPBACK, 9153), ""),
    "gpufleet cluster create": (opened(OPEN, *MADE), "0.0.0.0:10249"),
    "cilium in place of kube-proxy": (opened([*OPEN[:3], OPEN[-1]], *MADE), ""),
    "k3s": (opened(COREDNS, 9153), ""),
    "RKE2": (opened(RKE2, 9153), ""),
    "EKS, older kube-proxy": (opened(LOOPBACK[3:], 9153), "127.0.0.1:10249"),
    "EKS": (opened(LOOPBACK[3:], 9153, 10249), "0.0.0.0:10249"),
    "GKE": (opened(GKE, 10054, 10055, 10249), ""),
    "no pods at all": ([], ""),
}
