"""A Kubernetes control plane on this machine: real etcd and servers, nodes simulated by kwok."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from gpufleet_sandbox.cluster import nodes as simulated
from gpufleet_sandbox.cluster import programs
from gpufleet_sandbox.cluster.launch import (
    LOOPBACK,
    READY_SECONDS,
    api_of,
    launch,
    not_ready,
    prepare,
    require_running,
)
from gpufleet_sandbox.cluster.processes import Process, end
from gpufleet_sandbox.cluster.snapshot import Objects, Store
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.waiting import wait_until

DEFAULT = "default"
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")  # also the name of a folder


@dataclass(slots=True)
class Cluster:
    """A control plane on this machine, or any cluster of a kubeconfig (`ours` is False)."""

    name: str
    version: str  # 1.36.3
    kubeconfig: Path
    helm: Path  # helm 3
    processes: list[Process] = field(default_factory=list)
    started: bool = False  # all of them
    ours: bool = True
    etcd: str = ""  # its URL, or "" if not `ours`

    @classmethod
    def up(
        cls,
        name: str = DEFAULT,
        kubernetes: str = "1.36",
        nodes: int = 3,
        gpus: int = 8,
        labelled: bool = True,
        progress: Callable[[str], None] = print,
        address: str = LOOPBACK,
    ) -> Cluster:
        """Start it unless it is up; builds missing programs first (minutes, once).

        `kubernetes` is a minor; `nodes` simulated nodes get `gpus` GPUs each, `labelled` as by NFD.
        Its API server listens on one `address` of this machine.
        SandboxError if the cluster runs another version or a server does not start.
        """
        choice = programs.choose(kubernetes, progress)
        with _lock(name, progress):
            found = cls.find(name)
            if found and found.alive:
                if found.version != choice.version:
                    raise SandboxError(
                        kinds.OTHER_KUBERNETES(
                            name=name, found=found.version, wanted=choice.version
                        )
                    )
            else:
                if found:
                    found._remove()
                found = cls._start(name, choice, address, progress)
            found.add_nodes(nodes, gpus=gpus, labelled=labelled)
        return found

    @classmethod
    def find(cls, name: str = DEFAULT) -> Cluster | None:
        """The cluster of that name, up or not, or None."""
        path = _state(name)
        if not path.exists():
            return None
        data = json.loads(path.read_text())
        data["processes"] = [Process(**process) for process in data["processes"]]
        return cls(**{**data, "kubeconfig": Path(data["kubeconfig"]), "helm": Path(data["helm"])})

    @classmethod
    def existing(cls, kubeconfig: Path, progress: Callable[[str], None] = print) -> Cluster:
        """Any cluster, by the current context of its kubeconfig; `down` does not change it.

        SandboxError GF658 if it does not respond.
        """
        try:
            answer: Any = client.VersionApi(api_of(kubeconfig)).get_code(_request_timeout=10)
        except (ApiException, ConfigException, HTTPError) as error:
            reason = str(error)
            raise SandboxError(
                kinds.CLUSTER_SILENT(kubeconfig=kubeconfig, reason=reason)
            ) from error
        version = str(answer.git_version).removeprefix("v")
        helm = programs.helm(3, progress)
        return cls("existing", version, kubeconfig, helm, started=True, ours=False)

    @property
    def alive(self) -> bool:
        """True if all its processes were started and are running."""
        return self.started and all(process.alive for process in self.processes)

    @property
    def api(self) -> Any:
        """A kubernetes.client.ApiClient with administrator access."""
        return api_of(self.kubeconfig)

    @property
    def folder(self) -> Path:
        """The folder with its keys, data and logs (kwok.log ...)."""
        return _folder(self.name)

    def helm4(self, progress: Callable[[str], None] = print) -> Path:
        """helm 4, fetched or built on first use."""
        return programs.helm(4, progress)

    def down(self) -> int:
        """Stop its processes and remove its folder. Returns the number of processes."""
        if not self.ours:
            return 0
        with _lock(self.name):
            return self._remove()

    def add_nodes(self, count: int, *, gpus: int, labelled: bool = True) -> None:
        """Create missing simulated nodes up to `count`, and wait until they are Ready.

        SandboxError GF652 if they do not become Ready, or one of its programs has exited.
        """
        core: Any = client.CoreV1Api(self.api)
        existing = {node.metadata.name for node in core.list_node().items}
        wanted = simulated.names(count)
        for name in wanted:
            if name not in existing:
                core.create_node(
                    simulated.node(name, gpus=gpus, version=self.version, labelled=labelled)
                )

        def ready() -> bool:
            require_running(self.folder, self.processes)
            return self.ready_nodes() >= set(wanted)

        if not wait_until(ready, READY_SECONDS):
            raise not_ready(self.folder, "kwok")

    def stable_objects(self) -> Objects:
        """All its objects, once its controllers add no more."""
        return Store(self.etcd).stable_objects()

    def restore(self, objects: Objects) -> None:
        """Restore `objects` while its servers run; other objects are deleted.

        SandboxError GF652 if one of its programs has exited: another process may use its etcd's
        port. TimeoutError if something keeps creating other objects.
        """
        require_running(self.folder, self.processes)
        Store(self.etcd).restore(objects)

    def ready_nodes(self) -> set[str]:
        """Names of the nodes that are Ready."""
        core: Any = client.CoreV1Api(self.api)
        return {
            node.metadata.name
            for node in core.list_node().items
            for condition in node.status.conditions or ()
            if condition.type == "Ready" and condition.status == "True"
        }

    @classmethod
    def _start(
        cls, name: str, choice: programs.Choice, address: str, progress: Callable[[str], None]
    ) -> Cluster:
        binaries = choice.programs(progress)
        helm = programs.helm(3, progress)
        progress(f"starting Kubernetes {choice.version}")
        layout = prepare(_folder(name), choice.version, address)
        cluster = cls(name, choice.version, layout.kubeconfig, helm, etcd=layout.etcd_url)
        try:
            launch(layout, binaries, cluster._add)
            cluster.started = True
            cluster._save()
        finally:
            if not cluster.started:  # the logs are not removed
                end(cluster.processes[::-1])
        return cluster

    def _add(self, process: Process) -> None:
        self.processes.append(process)
        self._save()

    def _save(self) -> None:
        data = {**asdict(self), "kubeconfig": str(self.kubeconfig), "helm": str(self.helm)}
        path = _state(self.name)
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(data, indent=1) + "\n")
        partial.replace(path)

    def _remove(self) -> int:
        ended = end(self.processes[::-1])
        if self.folder.exists():  # else another process has removed it
            shutil.rmtree(self.folder)
        return ended


def every_cluster() -> list[Cluster]:
    """All clusters that were started and not taken down."""
    states = sorted((cache_dir() / "cluster").glob("*/state.json"))
    found = [Cluster.find(state.parent.name) for state in states]
    return [cluster for cluster in found if cluster]


def _folder(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise SandboxError(kinds.BAD_CLUSTER_NAME(name=name))
    return cache_dir() / "cluster" / name


def _state(name: str) -> Path:
    return _folder(name) / "state.json"


def _lock(name: str, progress: Callable[[str], None] | None = None) -> AbstractContextManager[None]:
    """The lock of one cluster: only one command starts or stops it at a time."""
    return exclusive(_folder(name).parent, name, progress)
