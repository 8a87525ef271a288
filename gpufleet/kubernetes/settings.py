"""Settings of the kubernetes role: data keys `kubernetes_*`."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from gpufleet.core.settings import (
    Address,
    Fingerprint,
    RoleSettings,
    Url,
    Values,
    in_quotes,
    must_match,
)
from gpufleet.kubernetes.archives import expand_patterns, read_archive

_NUMBER = "(0|[1-9][0-9]*)"
_EXACT = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
_VERSION = rf"{_EXACT}|{_NUMBER}\.{_NUMBER}"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS = re.compile(rf"{_LABEL}(\.{_LABEL})*")
API_PORT = 6443


def _network(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError as error:
        raise ValueError("must be a network, such as 10.244.0.0/16") from error


def _endpoint(value: str) -> str:
    """host:port in lower case. The default port is the API server's."""
    text = value.lower()
    if _is_address(text, 6):
        text = f"[{text}]"
    host, _, port = text.rpartition(":") if re.search(r":[0-9]{1,5}$", text) else (text, "", "")
    bracketed = host.startswith("[") and host.endswith("]") and _is_address(host[1:-1], 6)
    named = bool(_DNS.fullmatch(host)) and len(host) <= 253 and not re.fullmatch(r"[0-9.]+", host)
    number = int(port or API_PORT)
    if not (bracketed or named or _is_address(host, 4)) or not 0 < number < 65536:
        raise ValueError(
            'must be a host or host:port, such as "k8s.lab.example.com" or "10.0.0.10:6443"'
        )
    return f"{host}:{number}"


def _is_address(text: str, version: int) -> bool:
    try:
        return ip_address(text).version == version and "%" not in text
    except ValueError:
        return False


Version = Annotated[
    str, in_quotes("1.36"), must_match(_VERSION, "a minor or a version: 1.36 or 1.36.3")
]
Network = Annotated[str, AfterValidator(_network)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]


_PREFIX = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_OURS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KNOWN = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def _own_label(value: str) -> str:
    """A kubelet labels its node within limits.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
    """
    domain = value.partition("/")[0] if "/" in value else ""
    reserved = _below(domain, "kubernetes.io") or _below(domain, "k8s.io")
    if reserved and value not in _KNOWN and not any(_below(domain, own) for own in _OURS):
        raise ValueError("is reserved: a kubelet must not set labels of kubernetes.io and k8s.io")
    return value


def _below(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


Label = Annotated[
    str, must_match(f"{_PREFIX}{_NAME}", "the name of a label"), AfterValidator(_own_label)
]
LabelValue = Annotated[str, must_match(f"({_NAME})?", "the value of a label")]
Taint = Annotated[
    str,
    must_match(
        rf"{_PREFIX}{_NAME}(=({_NAME})?)?:(NoSchedule|PreferNoSchedule|NoExecute)",
        "a taint: key=value:NoSchedule, key:NoExecute",
    ),
]


def _archives(value: list[str]) -> list[str]:
    """The paths of archives that can be read, with names for their images."""
    paths = expand_patterns(value)
    for path in paths:
        read_archive(path)
    return paths


ImageArchives = Annotated[list[str], AfterValidator(_archives)]


class KubernetesSettings(RoleSettings):
    """Kubernetes on this host, by kubeadm. Disabled by default."""

    prefix = "kubernetes_"

    enabled: bool = Field(
        False,
        description="Make the host a node of a Kubernetes cluster: a control plane if it is in the "
        "group `control_plane`, else a worker.",
    )
    version: Version | None = Field(
        None,
        description='Minor or exact version, for example "1.36". Default: the catalog\'s '
        "default minor; a node keeps its own.",
    )
    endpoint: Endpoint | None = Field(
        None,
        description="Address of the API server for all nodes and users, as host or host:port: your "
        "load balancer, virtual IP address or DNS name. Required for several control planes; read "
        "when the cluster is created. Default port: 6443.",
    )
    network: Literal["flannel", "none"] = Field(
        "flannel", description="Network between pods. `none`: you install one."
    )
    pod_subnet: Network = Field("10.244.0.0/16", description="Addresses of pods.")
    service_subnet: Network = Field("10.96.0.0/12", description="Addresses of services.")
    control_plane_pods: bool = Field(
        False, description="Allow scheduling of pods on the control plane."
    )
    labels: dict[Label, LabelValue] = Field(
        default_factory=dict, description="Labels that the node gets when it joins."
    )
    taints: list[Taint] = Field(
        default_factory=list,
        description="Taints that the node gets when it joins, as `key=value:NoSchedule`.",
    )
    kubelet: Values = Field(
        default_factory=dict, description="Further fields of KubeletConfiguration."
    )
    kube_proxy: Values = Field(
        default_factory=dict, description="Further fields of KubeProxyConfiguration."
    )
    etcd_tag: str | None = Field(
        None, description="Tag of etcd's image. Default: the one of kubeadm."
    )
    metrics_address: Address = Field(
        "0.0.0.0",
        description="Address at which controller manager, scheduler, etcd and kube-proxy serve "
        "metrics, so that a Prometheus of the cluster can scrape them; read when the cluster is "
        "created. etcd (2381) and kube-proxy (10249) ask for no login: close these ports to other "
        "networks, or set 127.0.0.1, as kubeadm has it, and they are not scraped.",
    )
    registry_mirrors: dict[str, Url] = Field(
        default_factory=dict,
        description="Mirrors of container registries, by the registry's name: "
        '{"registry.k8s.io": "https://mirror.example.com/v2/registry.k8s.io"}.',
    )
    image_archives: ImageArchives = Field(
        default_factory=list,
        description="Archives of container images on the controller, by path or pattern, in OCI's "
        "or docker's format; containerd imports them before the node joins.",
    )
    kubeconfig: str | None = Field(
        None,
        description="Path on the controller where the administrator's kubeconfig is written; only "
        "its owner may read it. The cluster's `cluster_kubeconfig` names the same file.",
    )
    repo_url: Url | None = Field(
        None, description="URL of a mirror of the packages, up to what precedes `core:/stable:`."
    )
    repo_key_fingerprint: Fingerprint | None = Field(
        None, description="Fingerprint of the mirror's signing key, if it is not Kubernetes'."
    )
    hold: bool = Field(True, description="Hold the packages at the installed version.")

    @field_validator("pod_subnet")
    def check_pod_subnet(cls, value: str, info: ValidationInfo) -> str:
        """gpufleet's flannel has IPv4 alone, and does not start with another network."""
        if info.data.get("network") == "flannel" and ip_network(value).version != 4:
            raise ValueError(
                'must have IPv4 addresses for flannel; with IPv6, set kubernetes_network = "none" '
                "and install a network"
            )
        return value
