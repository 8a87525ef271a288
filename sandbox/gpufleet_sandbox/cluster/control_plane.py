"""Command-line flags of the programs of a control plane. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpufleet_sandbox.cluster.versions import versions

SERVICES = "10.0.0.0/16"
LEASE_SECONDS = 400  # of a node; kwok renews it four times in this time, a kubelet every 10 s
GRACE_SECONDS = 600  # without a renewal, until the node is NotReady
FRONT_PROXY = "front-proxy-client"  # the API server's user at aggregated APIs


@dataclass(frozen=True, slots=True)
class Layout:
    """Folder and ports of one cluster; `address`: of the API server."""

    folder: Path
    version: str  # 1.36.3
    address: str
    api_port: int
    etcd_port: int
    peer_port: int

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.api_port}"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.etcd_port}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"


QPS = 400  # requests a second of each controller; by default 20, which thousands of pods wait for


def etcd(layout: Layout) -> list[str]:
    """etcd with its data in the cluster's folder, without fsync: data may be lost in a crash."""
    client, peer = layout.etcd_url, f"http://127.0.0.1:{layout.peer_port}"
    return [
        "--data-dir", str(layout.folder / "etcd"), "--unsafe-no-fsync", "--name", "sandbox",
        "--listen-client-urls", client, "--advertise-client-urls", client,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", f"sandbox={peer}", "--log-level", "warn",
    ]  # fmt: skip


def api_server(layout: Layout) -> list[str]:
    """kube-apiserver with RBAC, tokens from a file and node certificates, without Endpoints."""
    folder = layout.folder
    flags = {
        "etcd-servers": layout.etcd_url,
        "bind-address": layout.address,
        "advertise-address": layout.address,
        "secure-port": layout.api_port,
        "tls-cert-file": folder / "server.crt",
        "tls-private-key-file": folder / "server.key",
        "token-auth-file": folder / "tokens.csv",
        "client-ca-file": folder / "ca.crt",
        "authorization-mode": "Node,RBAC",
        "service-account-key-file": folder / "service-account.key",
        "service-account-signing-key-file": folder / "service-account.key",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-cluster-ip-range": SERVICES,
        "allow-privileged": "true",
        # since 1.37 a server with a loopback address does not start if it writes its Endpoints
        "endpoint-reconciler-type": "none",
        **_aggregation(folder),
    }
    return _flags({**flags, **_of_version("kube-apiserver", layout)})


def _aggregation(folder: Path) -> dict[str, object]:
    """Flags for an API server to forward requests to an APIService with the user's identity.

    https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
    """
    return {
        "requestheader-client-ca-file": folder / "front-proxy-ca.crt",
        "requestheader-allowed-names": FRONT_PROXY,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": folder / "front-proxy-client.crt",
        "proxy-client-key-file": folder / "front-proxy-client.key",
    }


def controller_manager(layout: Layout) -> list[str]:
    flags = {
        "service-account-private-key-file": layout.folder / "service-account.key",
        "root-ca-file": layout.folder / "ca.crt",
        "horizontal-pod-autoscaler-sync-period": "2s",  # default 15 s; shortens tests
        # after a late lease, a kubelet sets its pods Ready again; kwok does not
        "node-monitor-grace-period": f"{GRACE_SECONDS}s",
        **_client(layout),
        **_of_version("kube-controller-manager", layout),
    }
    return _flags(flags)


def scheduler(layout: Layout) -> list[str]:
    return _flags({**_client(layout), **_of_version("kube-scheduler", layout)})


def kwok(layout: Layout, stages: Path) -> list[str]:
    """kwok simulates the kubelet of every node with the label type=kwok."""
    return _flags(
        {
            "kubeconfig": layout.kubeconfig,
            "config": stages,
            "manage-nodes-with-label-selector": "type=kwok",
            "manage-all-nodes": "false",
            "node-lease-duration-seconds": LEASE_SECONDS,
            "server-address": "",
        }
    )


def _client(layout: Layout) -> dict[str, object]:
    """Common flags of the controller manager and the scheduler. They listen on no port, as another
    program could take it before they start."""
    return {
        "kubeconfig": layout.kubeconfig,
        "leader-elect": "false",
        "secure-port": 0,
        "kube-api-qps": QPS,
        "kube-api-burst": 2 * QPS,
    }


def _of_version(program: str, layout: Layout) -> dict[str, str]:
    return versions().kubernetes.flags_of(program, layout.version)


def _flags(values: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]
