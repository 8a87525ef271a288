"""The configuration of one runtime by all the files that it reads. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.formats.edits import NotUnderstood, lookup_path
from gpufleet.toolkit.config import containerd_layers, crio, docker
from gpufleet.toolkit.config.layers import Layers
from gpufleet.toolkit.config.tables import parse_tables
from gpufleet.toolkit.runtime_model import Context

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"  # containerd's default


def layers_of(context: Context, texts: Mapping[str, str], main: str = "") -> Layers:
    """The runtime's tables if its files have these `texts`. `main`: another main file."""
    main, runtime = main or context.main_path, context.runtime
    if runtime.name == "crio":
        return crio.read_crio_layers(texts, main)
    if runtime.name == "containerd":
        deep = context.has("drop-ins-merged")
        return containerd_layers.read_containerd_layers(texts, main, deep, context.newest_version)
    try:
        return docker.read_docker_layers(
            texts.get(main), main, runtime.unit, context.service.exec_start
        )
    except NotUnderstood:
        return Layers()


def containerd_socket(main: str | None, exec_start: str) -> str:
    """containerd's socket, from its command line, its main file, or its default."""
    flags = [
        value for flag in ("--address", "-a") for value in docker.flag_values(exec_start, flag)
    ]
    named = lookup_path(parse_tables(main), ("grpc", "address"))
    return flags[-1] if flags else str(named or CONTAINERD_SOCKET)
