"""What a host's facts say about its GPUs, and about what is installed and not in use. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpufleet.core.findings import Finding, Kind
from gpufleet.core.names import counted
from gpufleet.core.versions import version_order
from gpufleet.core.visible import Count
from gpufleet.facts.model import NodeFacts
from gpufleet.status import findings

_DEBIAN = re.compile(r"linux-image-(?:unsigned-)?(?P<release>\d\S*)")
_FLAVOUR = re.compile(r"\d(?P<flavour>-[a-z][\w-]*)$")  # 5.15.0-122-generic
# packages of EL 7, of EL 8, and of Amazon Linux 2023, where a series is a package
_KERNEL = re.compile(r"kernel(?P<series>\d+\.\d+)?(-core)?")


def gpu_problems(facts: NodeFacts) -> Iterator[Finding]:
    """GPUs that are missing, do not respond, or have no driver."""
    lost = missing_gpus(facts)
    silent = [gpu.slot for gpu in facts.gpus if not gpu.answers]
    unbound = [gpu.slot for gpu in facts.gpus if gpu.driver is None and gpu.answers]
    yield from _some(findings.GPU_LOST, lost, _counted)
    yield from _some(findings.GPU_SILENT, silent, _counted)
    if facts.loaded_driver:
        yield from _some(findings.GPU_UNBOUND, unbound, _are)


def missing_gpus(facts: NodeFacts) -> list[str]:
    """Slots of GPUs that the driver has and the PCI bus has not."""
    there = {gpu.slot.lower() for gpu in facts.gpus}
    return [slot for slot in facts.taken if slot not in there]


def _some(kind: Kind, slots: list[str], count: object) -> Iterator[Finding]:
    if slots:
        assert callable(count)
        yield kind(count=count(len(slots)), slots=", ".join(slots))


def _counted(number: int) -> str:
    return counted(number, "GPU")


def _are(number: int) -> str:
    return f"{Count(number):GPU is|GPUs are}"


def not_in_use(facts: NodeFacts) -> Iterator[Finding]:
    """Why the host needs a reboot."""
    loaded, installed = facts.loaded_driver, facts.module_on_disk
    if loaded and installed and installed.version and installed.version != loaded:
        why = f"Driver {installed.version} is installed, {loaded} is loaded"
        yield findings.REBOOT(why=why)
    if newer := newer_kernel(facts):
        why = f"Kernel {newer} is installed, {facts.kernel.release} runs"
        yield findings.REBOOT(why=why)


def newer_kernel(facts: NodeFacts) -> str:
    """The newest installed kernel of the running one's flavour; "" if that is the running one."""
    running = facts.kernel.release
    found = [*_of_debian(facts), *_of_rpm(facts)]
    newest = max(found, key=version_order, default="")
    return newest if newest and version_order(newest) > version_order(running) else ""


def _of_debian(facts: NodeFacts) -> Iterator[str]:
    flavour = _FLAVOUR.search(facts.kernel.release)
    for name, package in facts.packages.items():
        match = _DEBIAN.fullmatch(name)
        if match and flavour and package.state == "installed":
            other = _FLAVOUR.search(match["release"])
            if other and other["flavour"] == flavour["flavour"]:
                yield match["release"]


def _of_rpm(facts: NodeFacts) -> Iterator[str]:
    if "uek" in facts.kernel.release:  # Oracle's kernel beside Red Hat's, whose numbers are lower
        return
    for package in facts.packages.values():
        match = _KERNEL.fullmatch(package.name)
        if (
            match
            and package.architecture == facts.kernel.architecture
            and facts.kernel.release.startswith(f"{match['series']}." if match["series"] else "")
        ):
            yield f"{package.version.split(':', 1)[-1]}.{package.architecture}"
