"""The kernels that are installed on a host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpufleet.core.versions import version_order
from gpufleet.facts.model import NodeFacts

_DEBIAN = re.compile(r"linux-image-(?:unsigned-)?(?P<release>\d\S*)")
_FLAVOUR = re.compile(r"\d(?P<flavour>-[a-z][\w-]*)$")  # 5.15.0-122-generic
# packages of EL 7, EL 8 and Amazon Linux 2023, which has a package per series
_KERNEL = re.compile(r"kernel(?P<series>\d+\.\d+)?(-core)?")


def newer_kernel(facts: NodeFacts) -> str:
    """The newest installed kernel of the running kernel's flavour, or "" if that one is running."""
    running = facts.kernel.release
    found = [*_of_debian(facts), *_of_rpm(facts)]
    newest = max(found, key=version_order, default="")
    return newest if newest and version_order(newest) > version_order(running) else ""


def kernel_flavour(facts: NodeFacts) -> str:
    """The end of the names of Ubuntu's metapackages for the running kernel: generic-hwe-24.04,
    nvidia-64k. It is that of an installed linux-image metapackage, if one fits. "" if not known.

    Source: https://github.com/PXDiv/Div-Acer-Manager-Max/issues/38 (read 2026-11-28), where kernel
    6.14.0-24-generic has linux-modules-nvidia-570-generic-hwe-24.04
    """
    found = _FLAVOUR.search(facts.kernel.release)
    if found is None:
        return ""
    flavour, series = found["flavour"].lstrip("-"), facts.kernel.release.split("-")[0]
    images = "generic|virtual" if flavour == "generic" else re.escape(flavour)
    names = re.compile(rf"linux-image-(?:{images})((?:-(?:hwe-|lts-)?[\d.]+[a-z]?)?)")
    there = [
        (bool(re.match(rf"{re.escape(series)}[.-]", package.version)), flavour + match[1])
        for package in facts.packages.values()
        if (match := names.fullmatch(package.name))
    ]
    return max(there, default=(True, flavour))[1]


def _of_debian(facts: NodeFacts) -> Iterator[str]:
    flavour = _FLAVOUR.search(facts.kernel.release)
    for name, package in facts.packages.items():
        match = _DEBIAN.fullmatch(name)
        if match and flavour and package.state == "installed":
            other = _FLAVOUR.search(match["release"])
            if other and other["flavour"] == flavour["flavour"]:
                yield match["release"]


def _of_rpm(facts: NodeFacts) -> Iterator[str]:
    if "uek" in facts.kernel.release:  # Red Hat's kernel has a lower version than Oracle's
        return
    for package in facts.packages.values():
        match = _KERNEL.fullmatch(package.name)
        if (
            match
            and package.architecture == facts.kernel.architecture
            and facts.kernel.release.startswith(f"{match['series']}." if match["series"] else "")
        ):
            yield f"{package.version.split(':', 1)[-1]}.{package.architecture}"
