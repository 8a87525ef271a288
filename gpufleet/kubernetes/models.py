"""Types of kubernetes.yaml."""

from __future__ import annotations

from datetime import date

from gpufleet.core.entries import Sourced, Style
from gpufleet.core.versions import version_tuple
from gpufleet.packages.models import Key, RepositoryLayout
from gpufleet.toolkit.models import ToolkitCatalog


class KubernetesRepository(Sourced):
    """The project's repository: `base`, then a path per minor and packaging."""

    base: str
    paths: dict[Style, str]
    key: Key
    layouts: tuple[RepositoryLayout, ...]


class Requirement(Sourced):
    """What hosts must have from a minor on."""

    name: str
    since: str


class ContainerdLimit(Sourced):
    """The oldest containerd of a minor and those after it."""

    since: str
    minimum: str


class HostLimits(Sourced):
    """The least that a control plane has."""

    processors: int
    memory: int  # KiB


class PauseImage(Sourced):
    """The image of pods' first process that kubeadm of a minor expects."""

    minor: str
    image: str


class Flannel(Sourced):
    """The network between pods."""

    version: str
    image: str
    plugin: str


class Kubernetes(Sourced):
    """kubernetes.yaml"""

    as_of: date
    newest: str
    oldest: str
    packages: tuple[str, ...]
    repository: KubernetesRepository
    requirements: tuple[Requirement, ...]
    containerds: tuple[ContainerdLimit, ...]
    hosts: HostLimits
    pause: tuple[PauseImage, ...]
    flannel: Flannel

    def requires(self, name: str, minor: str) -> bool:
        """Whether a minor (1.36) has a requirement."""
        since = next(each.since for each in self.requirements if each.name == name)
        return version_tuple(minor) >= version_tuple(since)

    def containerd(self, minor: str) -> str:
        """The oldest containerd that a minor runs on."""
        wanted = version_tuple(minor)
        fitting = [each for each in self.containerds if version_tuple(each.since) <= wanted]
        return max(fitting, key=lambda each: version_tuple(each.since)).minimum

    def pause_image(self, minor: str) -> str:
        """ "" for a minor whose image the catalog does not list: containerd's own is used."""
        return next((each.image for each in self.pause if each.minor == minor), "")


class KubernetesCatalog(ToolkitCatalog):
    """The catalog for decisions about Kubernetes."""

    kubernetes: Kubernetes
