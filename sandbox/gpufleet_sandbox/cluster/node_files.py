"""Configuration files of a real node. Pure."""

from __future__ import annotations

import base64
from typing import Any

import tomlkit
import yaml

from gpufleet_sandbox.cluster.versions import versions

KUBELET = "/usr/local/bin/kubelet"
CONFIGURATION, ACCESS, AUTHORITY = (
    f"/etc/kubernetes/{name}" for name in ("kubelet.yaml", "kubelet.conf", "ca.crt")
)
CNI_PROGRAMS = ("bridge", "host-local", "loopback")
CNI_FOLDER = "/usr/lib/cni"  # of Debian's containerd
CRI = "io.containerd.grpc.v1.cri"  # the table of containerd 1.x
PAUSE = "localhost/pause:sandbox"
NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.244.0.0/24"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
    ],
}


def kubelet_configuration(version: str) -> str:
    """kubelet.yaml for a release (1.36.3), on cgroup v1 or v2."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"x509": {"clientCAFile": AUTHORITY}},
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            # a sandbox host shares swap, disk and memory with this machine and other hosts
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
            **versions().kubernetes.kubelet_settings(version),
        }
    )


def access(server: str, authority: str, certificate: str, key: str) -> str:
    """The kubelet's kubeconfig; `authority`, `certificate` and `key` are PEM."""

    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    cluster = {"server": server, "certificate-authority-data": encoded(authority)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "node",
            "contexts": [{"name": "node", "context": {"cluster": "sandbox", "user": "node"}}],
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "node", "user": user}],
        }
    )


def unit(name: str, address: str) -> str:
    """kubelet.service of the node `name`.

    The kubelet reads kernel messages from /dev/kmsg, which has those of this machine: hide it.
    """
    flags = {
        "config": CONFIGURATION,
        "kubeconfig": ACCESS,
        "hostname-override": name,
        "node-ip": address,
    }
    words = " ".join(f"--{flag}={value}" for flag, value in flags.items())
    return f"""\
[Unit]
Description=kubelet
After=containerd.service

[Service]
ExecStartPre=/bin/ln -sf /dev/null /dev/kmsg
ExecStart={KUBELET} {words}
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""


def containerd_settings(text: str) -> str:
    """containerd's config.toml with the settings of a node in a container; the rest unchanged."""
    document = tomlkit.parse(text)
    table: Any = document
    for name in ("plugins", CRI):
        table = table.setdefault(name, tomlkit.table())
    table["sandbox_image"] = PAUSE
    table["restrict_oom_score_adj"] = True  # a container cannot go below the host's score
    return tomlkit.dumps(document)
