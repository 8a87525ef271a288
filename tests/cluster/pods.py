"""Pods for the tests of control planes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Pods = Callable[[str], list[Any]]
SECONDS = 900.0  # limit; on an idle machine kwok and the controllers need one or two


def pod(labels: dict[str, str], **more: Any) -> dict[str, Any]:
    """A pod or pod template with one container; `more` is added to its metadata."""
    container = {"name": "main", "image": "example/none", **more.pop("container", {})}
    return {
        "metadata": {"labels": labels, **more},
        "spec": {"containers": [container]},
    }


def workload(name: str, **more: Any) -> dict[str, Any]:
    """A Deployment or DaemonSet of such pods, which have the label app=`name`."""
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": pod({"app": name}),
            **more,
        },
    }


def phases(pods: list[Any]) -> list[str]:
    return [each.status.phase for each in pods]
