"""Pods and nodes as the checks see them. Pure."""

from __future__ import annotations

from typing import Any

OTHER_PURPOSES = (
    *("gpu-feature-discovery", "mps-control-daemon", "config-manager"),  # the plugin's image
    "nv-hostengine",  # the exporter's
)


def is_ready(thing: Any) -> bool:
    """Whether a pod or node is Ready."""
    return any(
        condition.type == "Ready" and condition.status == "True"
        for condition in thing.status.conditions or ()
    )


def runs(pod: Any, image: str) -> bool:
    """Whether a pod runs an image for its main purpose."""
    return any(_runs(container, image) for container in pod.spec.containers)


def _runs(container: Any, image: str) -> bool:
    """Images have several programs, which commands choose."""
    command = (container.command or [""])[0].rsplit("/", 1)[-1]
    return _image(container.image) == image and command not in OTHER_PURPOSES


def _image(reference: str) -> str:
    """dcgm-exporter of nvcr.io/nvidia/k8s/dcgm-exporter:4.5@sha256:…"""
    return reference.split("@")[0].rsplit("/", 1)[-1].split(":")[0]
