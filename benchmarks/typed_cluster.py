"""A cluster by kubeadm and helm, their commands typed by a script."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config

from benchmarks.fleet import each
from benchmarks.timing import RunFailed
from gpufleet.core.render import render_template
from gpufleet.kubernetes.kubeadm import JoinToken, init_configuration, join_configuration
from gpufleet.kubernetes.role import ROLE
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_node_settings
from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.inventory import cluster_data, group_data, kubeconfig, stack_data

ADMIN = "/etc/kubernetes/admin.conf"
KUBECTL = f"kubectl --kubeconfig {ADMIN}"
IGNORED = "--ignore-preflight-errors=SystemVerification"
READY = "5m"
OFFERED = r"jsonpath={.status.allocatable.nvidia\.com/gpu}"
HASH = (
    "openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | "
    "openssl pkey -pubin -outform der | sha256sum | cut -d ' ' -f 1"
)


@dataclass(frozen=True, slots=True)
class TypedCluster:
    """Create a cluster with gpufleet's releases from hosts that already have the packages."""

    settings: KubernetesSettings
    access: Path  # kubeconfig
    releases: Sequence[dict[str, Any]]  # as helm lists them
    values: dict[str, str]  # release -> file
    runtime_classes: str  # objects, as JSON
    labels: Sequence[str]  # that gpufleet gave the nodes
    helm: str
    charts: Path

    @classmethod
    def seen_on(cls, box: Sandbox, plane: Host, work: Path) -> TypedCluster:
        """The cluster that gpufleet created on the hosts of a sandbox."""
        data = {
            **group_data(),
            **cluster_data(box.name),
            "kubernetes_control_plane_pods": True,
        }
        settings, findings = load_node_settings(data)
        if settings is None:
            raise RunFailed(f"settings of the sandbox: {findings}")
        access = work / "kubeconfig"
        access.write_text(kubeconfig(box.name).read_text())
        helm = stack_data(box.name, str(work / "charts"))["cluster_helm"]
        found = cls(settings.of(ROLE), access, (), {}, "", (), helm, work / "charts")
        releases = json.loads(found._helm("list", "--all-namespaces", "--output", "json"))
        values = {}
        for release in releases:
            file = work / f"{release['name']}.yaml"
            words = ("get", "values", release["name"], "--namespace", release["namespace"])
            file.write_text(found._helm(*words, "--output", "yaml"))
            values[release["name"]] = str(file)
        classes = plane.output(f"{KUBECTL} get runtimeclass -o json")
        return cls(
            found.settings, access, releases, values, _bare(classes),
            ("nvidia.com/gpu.present=true",), helm, found.charts,
        )  # fmt: skip

    def pods_read(self) -> float:
        """Seconds of one read of all pods."""
        began = time.monotonic()
        api = client.CoreV1Api(config.new_client_from_config(str(self.access)))
        api.list_pod_for_all_namespaces()
        return time.monotonic() - began

    def type(self, hosts: Sequence[Host]) -> None:
        """kubeadm on all hosts, the network, then helm; the first host is the control plane."""
        plane, *workers = hosts
        version = plane.output("kubelet --version | sed 's/.* v//'")
        self._init(plane, version)
        each(workers, lambda host: self._join(plane, host, version), at_once=len(workers))
        self._on(
            plane,
            f"{KUBECTL} wait --for=condition=Ready node --all --timeout={READY}",
            f"{KUBECTL} label node --all {' '.join(self.labels)}",
        )
        self.access.write_text(plane.get(ADMIN))
        plane.run(f"{KUBECTL} apply -f -", stdin=self.runtime_classes)
        for release in self.releases:
            chart = self.charts / f"{release['chart']}.tgz"
            self._helm(
                "install", release["name"], str(chart), "--namespace", release["namespace"],
                "--create-namespace", "--wait", "--values", self.values[release["name"]],
            )  # fmt: skip
        self._on(plane, f"{KUBECTL} wait node --all --for={shlex.quote(OFFERED)} --timeout={READY}")

    def _init(self, plane: Host, version: str) -> None:
        flannel, network = load_catalog().kubernetes.flannel, self.settings.pod_subnet
        objects = render_template("kubernetes/flannel.yaml", flannel=flannel, network=network)
        init = init_configuration(self.settings, version, _api(version))
        plane.put("/root/init.yaml", init, 0o600)
        plane.put("/root/network.yaml", objects)
        self._on(
            plane,
            "systemctl enable -q kubelet",
            f"kubeadm init --config /root/init.yaml {IGNORED}",
            f"{KUBECTL} apply --server-side -f /root/network.yaml",
        )

    def _join(self, plane: Host, host: Host, version: str) -> None:
        token = plane.output(f"kubeadm --kubeconfig {ADMIN} token create --ttl 15m")
        joins = JoinToken(f"{plane.address}:6443", token, f"sha256:{plane.output(HASH)}", version)
        text = join_configuration(self.settings, joins, _api(version))
        host.put("/root/join.yaml", text, 0o600)
        join = f"kubeadm join --config /root/join.yaml {IGNORED}"
        self._on(host, "systemctl enable -q kubelet", join)

    @staticmethod
    def _on(host: Host, *commands: str) -> None:
        script = "; ".join(["set -e", *commands])
        host.ssh(f"sudo bash -c {shlex.quote(script)}", timeout=900)

    def _helm(self, *words: str) -> str:
        done = subprocess.run(
            [self.helm, *words], env={**os.environ, "KUBECONFIG": str(self.access)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RunFailed(f"helm {words[0]}: {done.stderr}")
        return done.stdout


def _bare(objects: str) -> str:
    """Objects without what the cluster added."""
    items = json.loads(objects)["items"]
    for item in items:
        item["metadata"] = {"name": item["metadata"]["name"]}
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _api(version: str) -> str:
    """The API version of kubeadm's configuration, for a version such as 1.36.3."""
    return load_catalog().kubernetes.configuration(version.rpartition(".")[0])
