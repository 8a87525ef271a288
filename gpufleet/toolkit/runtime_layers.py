"""The configuration of one runtime by all the files that it reads. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.formats.edits import NotUnderstood
from gpufleet.toolkit.config import containerd_layers, crio, docker
from gpufleet.toolkit.config.layers import Layers
from gpufleet.toolkit.runtime_model import Context


def layers_of(context: Context, texts: Mapping[str, str], main: str = "") -> Layers:
    """The runtime's tables if its files have these `texts`. `main`: another main file."""
    main, runtime = main or context.main_path, context.runtime
    if runtime.name == "crio":
        return crio.read_crio_layers(texts, main)
    if runtime.name == "containerd":
        deep = context.has("drop-ins-merged")
        return containerd_layers.read_containerd_layers(texts, main, deep, context.newest_version)
    text, start = texts.get(main), context.service.exec_start
    try:
        return docker.read_docker_layers(text, main, runtime.unit, start)
    except NotUnderstood:
        return Layers()
