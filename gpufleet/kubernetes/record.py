"""Kubernetes in the host's record."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from gpufleet.facts.record import RoleEntry
from gpufleet.toolkit.record import FilePart


class KubernetesEntry(RoleEntry):
    """The node that gpufleet made of the host."""

    role: ClassVar[str] = "kubernetes"

    part: str = ""  # control-plane or worker
    network: str = ""  # flannel or none
    containerd: FilePart = FilePart()
    archives: list[str] = Field(default_factory=list)  # digests of those that were imported
