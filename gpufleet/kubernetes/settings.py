"""Settings of the kubernetes role: data keys `kubernetes_*`."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import tomlkit
import yaml
from pydantic import AfterValidator, BeforeValidator, Field
from tomlkit.exceptions import TOMLKitError

from gpufleet.core.settings import Fingerprint, RoleSettings, Url, matching
from gpufleet.kubernetes.archives import expand, read_archive
from gpufleet.kubernetes.k3s.files import sha256_of

_NUMBER = "(0|[1-9][0-9]*)"
_EXACT = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
_VERSION = rf"{_EXACT}|{_NUMBER}\.{_NUMBER}|v{_EXACT}\+k3s[0-9]+"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS = re.compile(rf"{_LABEL}(\.{_LABEL})*")
API_PORT = 6443
NOT_FOR_USERS = frozenset({
    "server", "data-dir", "cluster-init", "cluster-reset", "datastore-endpoint", "tls-san",
    "docker", "cluster-cidr", "service-cidr", "flannel-backend", "disable-network-policy",
    "node-label", "node-taint", "write-kubeconfig", "write-kubeconfig-mode",
    "container-runtime-endpoint", "rootless", "disable-agent", "private-registry", "node-name",
    "with-node-id", "https-listen-port", "config",
    "cluster-secret", "datastore-cafile", "datastore-certfile", "datastore-keyfile", "vpn-auth",
    "etcd-s3-access-key", "etcd-s3-secret-key",
    "c", "d", "o", "s", "t",  # short for config, data-dir, write-kubeconfig, server, token
})  # fmt: skip


def _quoted(value: Any) -> Any:
    if isinstance(value, float):
        raise ValueError('must be in quotes, as in "1.36": numbers lose their last zeros')
    return value


def _network(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError as error:
        raise ValueError("must be a network, such as 10.244.0.0/16") from error


def _endpoint(value: str) -> str:
    """host:port in lower case, with the API server's port where none is given."""
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
    str,
    BeforeValidator(_quoted),
    matching(_VERSION, "a minor or a version: 1.36 or 1.36.3, or of k3s: v1.36.3+k3s1"),
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
    str, matching(f"{_PREFIX}{_NAME}", "the name of a label"), AfterValidator(_own_label)
]
LabelValue = Annotated[str, matching(f"({_NAME})?", "the value of a label")]
Taint = Annotated[
    str,
    matching(
        rf"{_PREFIX}{_NAME}(=({_NAME})?)?:(NoSchedule|PreferNoSchedule|NoExecute)",
        "a taint: key=value:NoSchedule, key:NoExecute",
    ),
]


def _archives(value: list[str]) -> list[str]:
    """The paths of archives that can be read, with names for their images."""
    paths = expand(value)
    for path in paths:
        read_archive(path)
    return paths


ImageArchives = Annotated[list[str], AfterValidator(_archives)]


def _k3s_files(value: list[str]) -> list[str]:
    """The paths of files that can be read, of one release."""
    paths = expand(value)
    for path in paths:
        sha256_of(path)
    names = [PurePosixPath(path).name for path in paths]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"must be of one release: there are several files {', '.join(twice)}")
    return paths


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Fields that a file of YAML can have."""
    try:
        yaml.safe_dump(value)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("must have only texts, numbers, lists and mappings") from error
    return value


Fields = Annotated[dict[str, Any], AfterValidator(_plain)]


def _k3s_config(value: dict[str, Any]) -> dict[str, Any]:
    """k3s adds the values of `name+` to those of `name`."""
    secret = sorted(name for name in value if name.rstrip("+") in NOT_FOR_USERS or "token" in name)
    if secret:
        raise ValueError(f"must not have {', '.join(secret)}: gpufleet sets it, or it is a secret")
    return value


def _toml(value: str) -> str:
    try:
        tomlkit.parse("" if "{{" in value else value)  # a template is k3s' to read
    except TOMLKitError as error:
        raise ValueError(f"is no TOML: {error}") from error
    return value


Digest = Annotated[str, matching(r"[0-9a-f]{64}", "a sha256 in lower-case hexadecimal digits")]


class KubernetesSettings(RoleSettings):
    """Kubernetes on this host, by kubeadm or k3s. Disabled by default."""

    prefix = "kubernetes_"

    enabled: bool = Field(
        False,
        description="Make the host a node of a Kubernetes cluster: a control plane if it is in the "
        "group `control_plane`, else a worker.",
    )
    distribution: Literal["kubeadm", "k3s"] = Field(
        "kubeadm",
        description="How the host becomes a node. `k3s` has never been run: see "
        "roles/kubernetes/README.md.",
    )
    version: Version | None = Field(
        None,
        description='Minor or exact version, for example "1.36". Default: the catalog\'s newest '
        'minor; a node keeps its own. k3s: exact, for example "v1.36.3+k3s1", without a default.',
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
    kubelet: Fields = Field(
        default_factory=dict, description="Further fields of KubeletConfiguration."
    )
    kube_proxy: Fields = Field(
        default_factory=dict, description="Further fields of KubeProxyConfiguration."
    )
    etcd_tag: str | None = Field(
        None, description="Tag of etcd's image. Default: the one of kubeadm."
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
    k3s_files: Annotated[list[str], AfterValidator(_k3s_files)] = Field(
        default_factory=list,
        description="k3s and its archives of images on the controller, by path or pattern, under "
        "the names that they have in a release: k3s, k3s-airgap-images-amd64.tar.zst.",
    )
    k3s_url: Url | None = Field(
        None,
        description="URL of a mirror that hosts fetch these files from, up to what precedes "
        "`/v1.36.3+k3s1/k3s`; needs `kubernetes_k3s_sha256`.",
    )
    k3s_sha256: dict[str, Digest] = Field(
        default_factory=dict,
        description="sha256 of each file, by its name. Those of the mirror are the ones that are "
        "fetched; those of `kubernetes_k3s_files` are compared.",
    )
    k3s_config: Annotated[Fields, AfterValidator(_k3s_config)] = Field(
        default_factory=dict,
        description="Further options in /etc/rancher/k3s/config.yaml: "
        '{"default-runtime": "nvidia"}.',
    )
    k3s_containerd: Annotated[str, AfterValidator(_toml)] | None = Field(
        None,
        description="TOML that is appended to k3s' own configuration of containerd, in the file's "
        "version that this k3s has: 3 with containerd 2, else 2.",
    )
