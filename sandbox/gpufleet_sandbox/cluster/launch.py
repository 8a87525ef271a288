"""Start a control plane: etcd and the API server, then the programs that need it ready."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from gpufleet_sandbox.cluster import control_plane
from gpufleet_sandbox.cluster.access import write_access
from gpufleet_sandbox.cluster.certificates import write_keys
from gpufleet_sandbox.cluster.control_plane import Layout
from gpufleet_sandbox.cluster.processes import Process, free_ports, start
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.process import last_lines
from gpufleet_sandbox.waiting import wait_until

READY_SECONDS = 90
LOOPBACK = "127.0.0.1"
STAGES = ("stages.yaml", "failing_stages.yaml")
# Servers below 1.19 never respond to client-go's streamed lists.
# https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list
CLIENT_ENVIRONMENT = {"KUBE_FEATURE_WatchListClient": "false"}
# Less garbage collection saves a third of the CPU time of an API server's start.
SERVER_ENVIRONMENT = {"GOGC": os.environ.get("GOGC", "400")}


def prepare(folder: Path, version: str, address: str) -> Layout:
    """Create the folder of a new cluster with its keys and kubeconfig; chooses free ports."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    layout = Layout(folder, version, address, *free_ports(3))
    write_keys(folder, address)
    write_access(layout)
    return layout


def launch(
    layout: Layout, programs: Mapping[str, Path], started: Callable[[Process], None]
) -> None:
    """Start all programs and wait until the API server is ready.

    `started` receives each process immediately, so that none is lost if the caller is killed.
    SandboxError GF652 if one exits or takes longer than READY_SECONDS.
    """
    processes: list[Process] = []

    def run(name: str, flags: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        log = layout.folder / f"{name}.log"
        processes.append(start(name, [programs[name], *flags], log, environment or {}))
        started(processes[-1])

    run("etcd", control_plane.etcd(layout))
    run("kube-apiserver", control_plane.api_server(layout), SERVER_ENVIRONMENT)
    if not wait_until(lambda: _is_ready(layout, processes), READY_SECONDS):
        raise not_ready(layout.folder, "kube-apiserver")
    run("kube-controller-manager", control_plane.controller_manager(layout))
    run("kube-scheduler", control_plane.scheduler(layout))
    run("kwok", control_plane.kwok(layout, _stages(layout.folder)), CLIENT_ENVIRONMENT)


def not_ready(folder: Path, program: str) -> SandboxError:
    """The error for a program that exited or is not ready, with the end of its log."""
    log = folder / f"{program}.log"
    return SandboxError(
        kinds.SERVER_ENDED(
            program=program,
            name=folder.name,
            seconds=READY_SECONDS,
            output=last_lines(log.read_text(errors="replace"), 3) or "no output",
            log=log,
        )
    )


def api_of(kubeconfig: Path) -> Any:
    """A kubernetes.client.ApiClient for the current context of a kubeconfig."""
    return config.new_client_from_config(str(kubeconfig))


def require_running(folder: Path, processes: Sequence[Process]) -> None:
    """SandboxError GF652 if one has exited."""
    for process in processes:
        if not process.alive:
            raise not_ready(folder, process.name)


def _is_ready(layout: Layout, processes: Sequence[Process]) -> bool:
    """True if the API server is ready; SandboxError if it or etcd has exited."""
    require_running(layout.folder, processes)
    api = api_of(layout.kubeconfig)
    try:  # the server creates both after it starts to respond
        client.RbacAuthorizationV1Api(api).read_cluster_role("cluster-admin")
        client.CoreV1Api(api).read_namespace("default")
    except (ApiException, HTTPError):
        return False
    return True


def _stages(folder: Path) -> Path:
    """Write the stages of simulated nodes and pods as one file for kwok."""
    here = resources.files("gpufleet_sandbox.cluster")
    target = folder / "stages.yaml"
    target.write_text("\n---\n".join(here.joinpath(name).read_text() for name in STAGES))
    return target
