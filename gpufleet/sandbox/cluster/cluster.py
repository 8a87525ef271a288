"""A Kubernetes control plane on this machine: real etcd and servers, nodes simulated by kwok."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from gpufleet.sandbox.cluster import control_plane, nodes
from gpufleet.sandbox.cluster.build import STAGES, kubernetes_servers, program
from gpufleet.sandbox.cluster.certificates import write_keys
from gpufleet.sandbox.cluster.control_plane import Layout
from gpufleet.sandbox.cluster.processes import Process, end, free_ports, start
from gpufleet.sandbox.cluster.versions import versions
from gpufleet.sandbox.errors import SandboxError, kinds
from gpufleet.sandbox.paths import cache_dir
from gpufleet.sandbox.process import last_lines
from gpufleet.sandbox.waiting import wait_until

DEFAULT = "default"
READY_SECONDS = 90
CLIENT_ENV = {"KUBE_FEATURE_WatchListClient": "false"}  # servers below 1.19 never answer it


@dataclass(slots=True)
class Cluster:
    """A control plane that is up. `helm`: the program that was built for it."""

    name: str
    version: str  # 1.36.3
    kubeconfig: Path
    helm: Path
    helm4: Path | None = None
    processes: list[Process] = field(default_factory=list)
    started: bool = False  # whether all of them were

    @classmethod
    def up(
        cls,
        name: str = DEFAULT,
        kubernetes: str = "1.36",
        nodes: int = 3,
        gpus: int = 8,
        labelled: bool = True,
        progress: Callable[[str], None] = print,
    ) -> Cluster:
        """Start it, or find it up; what it consists of is built first (minutes, once).

        `kubernetes` is a minor; `nodes` simulated nodes get `gpus` GPUs each, `labelled` as NFD
        would. SandboxError where the name is taken by another version or a server does not start.
        """
        version = versions().release(kubernetes)
        found = cls.find(name)
        if found and found.alive:
            if found.version != version:
                raise SandboxError(
                    kinds.OTHER_KUBERNETES(name=name, found=found.version, wanted=version)
                )
        else:
            if found:
                found.down()
            found = cls._start(name, version, progress)
        found.add_nodes(nodes, gpus=gpus, labelled=labelled)
        return found

    @classmethod
    def find(cls, name: str = DEFAULT) -> Cluster | None:
        """The cluster of that name as it was started, up or not; None without any."""
        path = folder(name) / "state.json"
        if not path.exists():
            return None
        data = json.loads(path.read_text())
        data["processes"] = [Process(**process) for process in data["processes"]]
        for key in ("kubeconfig", "helm"):
            data[key] = Path(data[key])
        data["helm4"] = Path(data["helm4"]) if data["helm4"] else None
        return cls(**data)

    @property
    def alive(self) -> bool:
        """Whether it was started to the end and every process of it runs."""
        return self.started and all(process.alive for process in self.processes)

    @property
    def api(self) -> Any:
        """A kubernetes.client.ApiClient with the rights of an administrator."""
        return config.new_client_from_config(str(self.kubeconfig))  # type: ignore[no-untyped-call]

    def down(self) -> int:
        """End its processes and remove its folder; how many processes there were."""
        ended = end(self.processes[::-1])
        shutil.rmtree(folder(self.name), ignore_errors=True)
        return ended

    def add_nodes(self, count: int, *, gpus: int, labelled: bool = True) -> None:
        """See that it has that many simulated nodes, and wait until they are Ready."""
        core: Any = client.CoreV1Api(self.api)
        there = {node.metadata.name for node in core.list_node().items}
        wanted = nodes.names(count)
        for name in wanted:
            if name not in there:
                body = nodes.node(name, gpus=gpus, version=self.version, labelled=labelled)
                core.create_node(body)
        if not wait_until(lambda: self.ready_nodes() >= set(wanted), READY_SECONDS):
            raise self._not_ready("kwok")

    def ready_nodes(self) -> set[str]:
        """Names of the nodes that are Ready."""
        core: Any = client.CoreV1Api(self.api)
        return {
            node.metadata.name
            for node in core.list_node().items
            for condition in node.status.conditions or ()
            if condition.type == "Ready" and condition.status == "True"
        }

    def log(self, name: str) -> Path:
        return folder(self.name) / f"{name}.log"

    @classmethod
    def _start(cls, name: str, version: str, progress: Callable[[str], None]) -> Cluster:
        home = cache_dir() / "go"
        servers = kubernetes_servers(version, home, progress)
        etcd, kwok, helm = (program(each, home, progress) for each in ("etcd", "kwok", "helm"))
        layout = _layout(name, version)
        cluster = cls(name, version, layout.kubeconfig, helm)
        write_keys(layout.folder, layout.address)
        _write_access(layout)
        progress(f"starting Kubernetes {version}")
        cluster._run("etcd", [etcd, *control_plane.etcd(layout)])
        cluster._run(
            "kube-apiserver", [servers / "kube-apiserver", *control_plane.api_server(layout)]
        )
        if not wait_until(cluster._answers, READY_SECONDS):
            raise cluster._not_ready("kube-apiserver")
        cluster._run(
            "kube-controller-manager",
            [servers / "kube-controller-manager", *control_plane.controller_manager(layout)],
        )
        cluster._run(
            "kube-scheduler", [servers / "kube-scheduler", *control_plane.scheduler(layout)]
        )
        stages = _write_stages(kwok.parent / STAGES, layout.folder / "stages.yaml")
        cluster._run("kwok", [kwok, *control_plane.kwok(layout, stages)])
        cluster.started = True
        cluster._save()
        return cluster

    def _run(self, name: str, words: list[str | Path]) -> None:
        self.processes.append(start(name, words, self.log(name), CLIENT_ENV))
        self._save()

    def _save(self) -> None:
        data = asdict(self)
        for key in ("kubeconfig", "helm"):
            data[key] = str(data[key])
        data["helm4"] = str(self.helm4) if self.helm4 else None
        path = folder(self.name) / "state.json"
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(data, indent=1) + "\n")
        partial.replace(path)

    def _answers(self) -> bool:
        """Whether the API server is ready; SandboxError when it, or etcd, has ended."""
        for process in self.processes:
            if not process.alive:
                raise self._not_ready(process.name)
        api = self.api
        try:  # both are made after the server began to answer
            client.RbacAuthorizationV1Api(api).read_cluster_role("cluster-admin")
            client.CoreV1Api(api).read_namespace("default")
        except (ApiException, HTTPError):
            return False
        return True

    def _not_ready(self, name: str) -> SandboxError:
        log = self.log(name)
        output = last_lines(log.read_text(errors="replace"), 3) if log.exists() else "no output"
        return SandboxError(
            kinds.SERVER_ENDED(
                program=name, name=self.name, seconds=READY_SECONDS, output=output, log=log
            )
        )


def folder(name: str) -> Path:
    """Where the files of a cluster are."""
    return cache_dir() / "cluster" / name


def every_cluster() -> list[Cluster]:
    """All that were started and not taken down."""
    states = sorted((cache_dir() / "cluster").glob("*/state.json"))
    found = [Cluster.find(state.parent.name) for state in states]
    return [cluster for cluster in found if cluster]


def _layout(name: str, version: str) -> Layout:
    place = folder(name)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, mode=0o700)
    return Layout(place, version, "127.0.0.1", *free_ports(5))


def _write_access(layout: Layout) -> None:
    """The administrator's token, and the kubeconfig that uses it; readable by one user."""
    token = secrets.token_urlsafe(32)
    access = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sandbox",
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "admin"}}],
        "clusters": [
            {
                "name": "sandbox",
                "cluster": {
                    "server": layout.url,
                    "certificate-authority": str(layout.folder / "ca.crt"),
                },
            }
        ],
        "users": [{"name": "admin", "user": {"token": token}}],
    }
    _write_private(layout.folder / "tokens.csv", f'{token},admin,admin,"system:masters"\n')
    _write_private(layout.kubeconfig, yaml.safe_dump(access))


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def _write_stages(upstream: Path, target: Path) -> Path:
    """kwok's own stages and those that make pods fail, as one file."""
    own = resources.files("gpufleet.sandbox.cluster").joinpath("stages.yaml").read_text()
    parts = [path.read_text() for path in sorted(upstream.glob("*.yaml"))]
    target.write_text("\n---\n".join([*parts, own]))
    return target
