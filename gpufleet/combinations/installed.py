"""The components of a host, from its facts, and those that a plan installs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpufleet.combinations.models import Combinations, Component, Components, Trait
from gpufleet.facts.model import NodeFacts

HOST_RUNTIMES: tuple[Component, ...] = ("docker", "containerd", "crio")
COMPRESSED = (".gz", ".xz", ".zst")


def installed_components(facts: NodeFacts, table: Combinations) -> Components:
    """The components of a host now."""
    upstream = {name: package.upstream for name, package in facts.packages.items()}
    versions = components_of_packages(upstream, table)
    module = facts.module_on_disk
    driver = facts.loaded_driver or (module.version if module else "")
    runtimes = {
        name: facts.runtimes[name].version for name in HOST_RUNTIMES if name in facts.runtimes
    }
    found = {**versions, **runtimes, "driver": driver, "kernel": facts.kernel.release}
    if unbuilt := unbuilt_driver(facts):
        found["driver-build"] = unbuilt
    known = {name: version for name, version in found.items() if version}
    return Components(known, frozenset(_traits(facts)))


def components_of_packages(
    versions: Mapping[str, str], table: Combinations
) -> dict[Component, str]:
    """Component -> the version of the first of its packages.

    Example: {"containerd.io": "2.3.2"} gives {"containerd": "2.3.2"}.
    """
    return {
        component: found
        for component, names in table.packages.items()
        if (found := next((versions[name] for name in names if name in versions), None)) is not None
    }


def unbuilt_driver(facts: NodeFacts) -> str:
    """The version that DKMS has as source only, although the running kernel has headers, or "".

    A host with a module for its kernel shows that the module can be built."""
    if facts.module_on_disk or facts.loaded_driver or not facts.kernel.headers:
        return ""
    return next((each.version for each in facts.dkms if _is_source(each.name, each.state)), "")


def _is_source(name: str, state: str) -> bool:
    return name.startswith("nvidia") and state == "added"


def _traits(facts: NodeFacts) -> Iterator[Trait]:
    if facts.listed and facts.listed.mig_devices:
        yield "mig"
    if facts.kubelet:
        yield "kubelet"
    if facts.cluster_host.name and facts.cluster_host.cgroups == 2:
        yield "cgroups-v2"
    path = facts.module_on_disk.path if facts.module_on_disk else ""
    if path.endswith(COMPRESSED):
        yield "compressed-module"
    if "nvidia-current" in path:
        yield "nvidia-current"
    yield from _rancher(each.unit for each in facts.runtimes.values())


def _rancher(units: Iterable[str]) -> Iterator[Trait]:
    for unit in units:
        if unit.startswith("k3s"):
            yield "k3s"
        if unit.startswith("rke2"):
            yield "rke2"
