"""Sources of test clusters: the model of versions.yaml, which explains its fields."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from gpufleet_sandbox.errors import SandboxError, kinds


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str


class _Reasoned(_Entry):
    """An entry for the minors from `since` on and `below` another; without both, for all."""

    why: str
    since: str = ""
    below: str = ""

    def applies(self, version: str) -> bool:
        """True if it applies to this release (1.18.19)."""
        minor = minor_of(version)
        if self.since and minor < minor_of(self.since):
            return False
        return not self.below or minor < minor_of(self.below)


class Pin(_Reasoned):
    """A module replaced by `use` (module@version)."""

    module: str
    use: str


class Repair(_Reasoned):
    """A change in a module's file: `find` (a regular expression) becomes `use`."""

    module: str
    file: str
    find: str
    use: str


class Flag(_Reasoned):
    """A flag of some `programs`."""

    programs: tuple[str, ...]
    flag: str
    value: str


class KubeletSetting(_Entry):
    """A field of the kubelet's configuration, for releases from `since` on."""

    field: str
    value: bool | str
    since: str
    why: str


class KubeadmTags(_Entry):
    """Tags of images that the kubeadm of a minor asks for; `etcd`: the program in its image."""

    coredns: str
    pause: str
    etcd: str


class Kubernetes(_Entry):
    """`releases`: minor -> release, as in 1.36 -> 1.36.3; `real_nodes`: minors, as 1.36."""

    module: str
    releases: dict[str, str]
    real_nodes: tuple[str, ...]
    kubeadm: dict[str, KubeadmTags]
    kubelet: tuple[KubeletSetting, ...]
    pins: tuple[Pin, ...]
    repairs: tuple[Repair, ...]
    flags: tuple[Flag, ...]

    def release(self, wanted: str) -> str:
        """The release of a minor; SandboxError GF650 if it is unknown.

        `wanted`: a minor (1.36), with or without a v, or a release in `releases`.
        """
        found = wanted.removeprefix("v")
        if found in self.releases.values():
            return found
        if found not in self.releases:
            raise SandboxError(
                kinds.UNKNOWN_KUBERNETES(wanted=wanted, known=", ".join(self.releases))
            )
        return self.releases[found]

    def kubelet_settings(self, version: str) -> dict[str, bool | str]:
        """Field -> value of the kubelet's configuration, for a release."""
        minor = minor_of(version)
        return {one.field: one.value for one in self.kubelet if minor >= minor_of(one.since)}

    def flags_of(self, program: str, version: str) -> dict[str, str]:
        """Flag -> value for one program of a release."""
        return {
            flag.flag: flag.value
            for flag in self.flags
            if program in flag.programs and flag.applies(version)
        }


class Edit(BaseModel):
    """A change in a file of the program's module: `find` (a regular expression) becomes `use`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    find: str
    use: str = ""
    why: str


class Program(_Entry):
    """A Go program at one version. `prints`: the version in the output of the program.

    `replace`: module -> module@version; `static`: linked without libc, so that an image needs
    nothing else; `needed_by`: "" for all clusters, else only for those of sandbox hosts: kubeadm or
    stack, for the GPU stack's images;
    `local`: our own program, a file next to this package, that needs the module.
    """

    module: str
    version: str
    prints: str
    package: str
    stamp: str = ""
    linker: str = ""
    tags: str = ""
    replace: dict[str, str] = Field(default_factory=dict)
    static: bool = False
    needed_by: Literal["", "kubeadm", "stack", "extended"] = ""  # extended: for such tests
    local: str = ""
    edits: tuple[Edit, ...] = ()

    @property
    def built_from(self) -> str:
        """The version, for our own programs with the digest of their source."""
        if not self.local:
            return self.version
        return f"{self.version}-{hashlib.sha256(self.local_source.read_bytes()).hexdigest()[:12]}"

    @property
    def local_source(self) -> Path:
        return Path(__file__).parents[1] / self.local


class Versions(BaseModel):
    """versions.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kubernetes: Kubernetes
    programs: dict[str, Program]

    def kubeadm_tags(self, release: str) -> KubeadmTags:
        """The image tags of a release such as 1.36.3."""
        return self.kubernetes.kubeadm[release.rpartition(".")[0]]

    def etcd_tag(self, release: str) -> str:
        """Tag of etcd's image in a kubeadm cluster of a release."""
        program = self.programs[self.kubeadm_tags(release).etcd]
        return f"{program.version.removeprefix('v')}-0"

    def programs_of(self, minors: Iterable[str]) -> list[str]:
        """Programs that kubeadm clusters of these minors need, in addition to Kubernetes' own."""
        known = self.kubernetes.kubeadm
        etcds = {tags.etcd for tags in known.values()}
        wanted = {known[minor].etcd for minor in minors if minor in known}
        needed = (name for name, each in self.programs.items() if each.needed_by == "kubeadm")
        return [name for name in needed if name not in etcds - wanted]


@lru_cache(maxsize=1)
def versions() -> Versions:
    """versions.yaml, validated."""
    text = resources.files("gpufleet_sandbox.cluster").joinpath("versions.yaml").read_text()
    return Versions.model_validate(yaml.safe_load(text))


def minor_of(version: str) -> int:
    """18 of 1.18.19, or of 1.18."""
    return int(version.split(".")[1])
