"""Types of kubernetes.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Literal, TypeVar

from gpufleet.core.entries import Sourced, Style
from gpufleet.core.versions import version_tuple
from gpufleet.packages.catalog import Key, RepositoryLayout
from gpufleet.toolkit.models import ToolkitCatalog


class KubernetesRepository(Sourced):
    """The project's repository: `base`, then a path per minor and packaging."""

    base: str
    paths: dict[Style, str]
    key: Key
    layouts: tuple[RepositoryLayout, ...]


class FromMinor(Sourced):
    """An entry that applies to a minor and those after it."""

    since: str


class Requirement(FromMinor):
    """A requirement on hosts."""

    name: str


class ConfigurationApi(FromMinor):
    """The API of kubeadm's configuration."""

    api: str


class NewerField(FromMinor):
    """A field of a component's configuration, or a value of it, that older minors do not have."""

    setting: Literal["kubelet", "kube_proxy"]
    field: str
    value: str | None = None  # None: any
    unknown: Literal["ignores", "fails"]  # effect in an older minor


class KernelLimit(FromMinor):
    """The oldest kernel that kubeadm accepts, below another minor."""

    below: str
    minimum: str


class ContainerdLimit(FromMinor):
    """The oldest containerd."""

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
    port: int  # UDP, of vxlan


SinceOf = TypeVar("SinceOf", bound=FromMinor)


def _latest(entries: Iterable[SinceOf], minor: str) -> SinceOf:
    """The entry that applies to a minor: the newest one of the same or an older minor."""
    fitting = [each for each in entries if version_tuple(each.since) <= version_tuple(minor)]
    return max(fitting, key=lambda each: version_tuple(each.since))


class Kubernetes(Sourced):
    """kubernetes.yaml"""

    as_of: date
    newest: str
    default: str
    oldest: str
    packages: tuple[str, ...]
    repository: KubernetesRepository
    configurations: tuple[ConfigurationApi, ...]
    requirements: tuple[Requirement, ...]
    fields: tuple[NewerField, ...]
    kernels: tuple[KernelLimit, ...]
    containerds: tuple[ContainerdLimit, ...]
    hosts: HostLimits
    pause: tuple[PauseImage, ...]
    flannel: Flannel

    def requires(self, name: str, minor: str) -> bool:
        """True if a minor (1.36) has a requirement."""
        since = next(each.since for each in self.requirements if each.name == name)
        return version_tuple(minor) >= version_tuple(since)

    def configuration(self, minor: str) -> str:
        """The API of a minor's kubeadm configuration: kubeadm.k8s.io/v1beta4."""
        return _latest(self.configurations, minor).api

    def kernel(self, minor: str) -> KernelLimit | None:
        """The oldest kernel that a minor's kubeadm accepts, or None if it accepts all."""
        wanted = version_tuple(minor)
        for each in self.kernels:
            if version_tuple(each.since) <= wanted < version_tuple(each.below):
                return each
        return None

    def too_new(
        self, setting: str, fields: Mapping[str, object], minor: str
    ) -> Iterator[NewerField]:
        """The fields of a component that a minor does not have yet."""
        for each in self.fields:
            if each.setting != setting or each.field not in fields:
                continue
            given = each.value is None or fields[each.field] == each.value
            if given and version_tuple(minor) < version_tuple(each.since):
                yield each

    def containerd(self, minor: str) -> str:
        """The oldest containerd that a minor runs on."""
        return _latest(self.containerds, minor).minimum

    def pause_image(self, minor: str) -> str:
        """ "" for a minor whose image the catalog does not list: containerd's own is used."""
        return next((each.image for each in self.pause if each.minor == minor), "")


class KubernetesCatalog(ToolkitCatalog):
    """The catalog for decisions about Kubernetes."""

    kubernetes: Kubernetes
