"""kubeadm's configuration files, as data and as text, in the API of a Kubernetes minor.

v1beta4 has a time limit per step and arguments as lists; v1beta3 has one time limit, for the API
server, and arguments as maps. Sources: https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/
and https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta3/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpufleet.core.merge import merge_mappings
from gpufleet.kubernetes.settings import KubernetesSettings

OLD_API = "kubeadm.k8s.io/v1beta3"
CRI_SOCKET_URL = "unix:///run/containerd/containerd.sock"
CONTROL_PLANE_TAINT = "node-role.kubernetes.io/control-plane"
ETCD_METRICS, PROXY_METRICS = 2381, 10249  # ports: as kubeadm and kube-proxy have them
SLOW = {"kubernetesAPICall": "4m0s", "controlPlaneComponentHealthCheck": "8m0s"}


@dataclass(frozen=True, slots=True)
class JoinToken:
    """The token by which a host joins a cluster; valid for minutes."""

    endpoint: str  # address:port of the API server
    token: str = field(repr=False)
    hash: str  # sha256:… of the cluster's certificate authority
    version: str  # of the control plane's kubelet, as 1.36.3
    key: str = field(default="", repr=False)  # of the control planes' certificates; "": a worker


def init_configuration(settings: KubernetesSettings, version: str, api: str) -> str:
    """The file of `kubeadm init` for a version such as 1.36.3. `api`: the version of its format."""
    init: dict[str, Any] = {
        "apiVersion": api,
        "kind": "InitConfiguration",
        "bootstrapTokens": [{"ttl": "1m0s"}],  # without one, kubeadm makes one for a day
        **({} if api == OLD_API else {"timeouts": SLOW}),
        "nodeRegistration": _registration(settings, api, controls=True),
    }
    old_limit = {"timeoutForControlPlane": SLOW["controlPlaneComponentHealthCheck"]}
    address = settings.metrics_address
    bind = {"bind-address": address}
    in_url = f"[{address}]" if ":" in address else address
    metrics = {"listen-metrics-urls": f"http://{in_url}:{ETCD_METRICS}"}
    image = {"imageTag": settings.etcd_tag} if settings.etcd_tag else {}
    cluster: dict[str, Any] = {
        "apiVersion": api,
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{version}",
        **({"apiServer": old_limit} if api == OLD_API else {}),
        "networking": {"podSubnet": settings.pod_subnet, "serviceSubnet": settings.service_subnet},
        "controllerManager": {"extraArgs": _arguments(api, bind)},
        "scheduler": {"extraArgs": _arguments(api, bind)},
        "etcd": {"local": {**image, "extraArgs": _arguments(api, metrics)}},
    }
    if settings.endpoint:  # kubeadm adds it to the API server's certificate
        cluster["controlPlaneEndpoint"] = settings.endpoint
    proxy = {"metricsBindAddress": f"{in_url}:{PROXY_METRICS}", **settings.kube_proxy}
    return _text(
        init,
        cluster,
        _component("kubelet", "Kubelet", settings.kubelet),
        _component("kubeproxy", "KubeProxy", proxy, "v1alpha1"),
    )


def join_configuration(settings: KubernetesSettings, token: JoinToken, api: str) -> str:
    """The file of `kubeadm join`. It contains the token, and the key of a control plane."""
    bootstrap = {
        "apiServerEndpoint": token.endpoint,
        "token": token.token,
        "caCertHashes": [token.hash],
    }
    join: dict[str, Any] = {
        "apiVersion": api,
        "kind": "JoinConfiguration",
        "discovery": {"bootstrapToken": bootstrap},
        **({} if api == OLD_API else {"timeouts": SLOW}),
        **({"controlPlane": {"certificateKey": token.key}} if token.key else {}),
        "nodeRegistration": _registration(settings, api, controls=bool(token.key)),
    }
    return _text(join)


def certificates_configuration(key: str, version: str, api: str) -> str:
    """The file of `kubeadm init phase upload-certs`: the key that encrypts them. Without a version
    kubeadm asks the Internet for one."""
    return _text(
        {
            "apiVersion": api,
            "kind": "InitConfiguration",
            "certificateKey": key,
            "nodeRegistration": {"criSocket": CRI_SOCKET_URL},
        },
        {"apiVersion": api, "kind": "ClusterConfiguration", "kubernetesVersion": f"v{version}"},
    )


def cgroup_driver(settings: KubernetesSettings) -> str:
    """The kubelet's: systemd or cgroupfs."""
    return str(settings.kubelet.get("cgroupDriver", "systemd"))


def _registration(settings: KubernetesSettings, api: str, *, controls: bool) -> dict[str, Any]:
    """The node's registration. Without a list of taints, kubeadm taints a control plane itself."""
    taints = [_taint(each) for each in settings.taints]
    open_to_pods = settings.control_plane_pods or not controls
    if taints and not open_to_pods:
        taints = [{"key": CONTROL_PLANE_TAINT, "effect": "NoSchedule"}, *taints]
    registration: dict[str, Any] = {"criSocket": CRI_SOCKET_URL}
    if taints or (controls and open_to_pods):
        registration["taints"] = taints
    if settings.labels:
        listed = ",".join(f"{name}={value}" for name, value in sorted(settings.labels.items()))
        registration["kubeletExtraArgs"] = _arguments(api, {"node-labels": listed})
    return registration


def _arguments(api: str, named: dict[str, str]) -> dict[str, str] | list[dict[str, str]]:
    """Arguments of a component, as that API writes them."""
    if api == OLD_API:
        return dict(named)
    return [{"name": name, "value": value} for name, value in named.items()]


def _taint(text: str) -> dict[str, str]:
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _component(
    group: str, kind: str, fields: Mapping[str, Any], version: str = "v1beta1"
) -> dict[str, Any]:
    head = {"apiVersion": f"{group}.config.k8s.io/{version}", "kind": f"{kind}Configuration"}
    return merge_mappings(dict(fields), head)


def _text(*documents: Mapping[str, Any]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)
