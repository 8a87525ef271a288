"""Branches and kernel modules that fit a host, and the conservative choice of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import Modules
from gpufleet.driver.catalog import Branch, DriverCatalog
from gpufleet.driver.needs import Device, common_modules, names
from gpufleet.driver.offers import Offer, kernel_takes_open, offers
from gpufleet.driver.settings import DriverSettings

KIND_TITLES = {
    "lts": "long-term branch",
    "production": "production branch",
    "new-feature": "new feature branch",
    "unknown": "branch",
}


@dataclass(frozen=True, slots=True)
class Request:
    """All inputs of a driver choice. `directory`: the repository's name of the architecture."""

    catalog: DriverCatalog
    distribution: Distribution
    directory: str
    kernel: str
    devices: tuple[Device, ...]
    nvswitch: bool
    settings: DriverSettings
    today: date
    installed: tuple[str, str] | None = None  # branch and modules of the driver on the host

    def having(self, **changes: object) -> Request:
        """The same request with other settings."""
        return replace(self, settings=self.settings.model_copy(update=changes))


@dataclass(frozen=True, slots=True)
class Candidate:
    """An installable branch that supports every GPU, and its usable module flavours."""

    offer: Offer
    modules: tuple[Modules, ...]


def is_over(branch: Branch, today: date) -> bool:
    """True if the branch is end of life on that day."""
    return branch.ended or (branch.end_of_life is not None and branch.end_of_life < today)


def usable_modules(request: Request, found: Offer) -> tuple[Modules, ...]:
    """Flavours of one branch that its packages, the GPUs, the kernel and the settings allow."""
    wanted = request.settings.modules
    return tuple(
        flavour
        for flavour in found.modules
        if flavour in common_modules(request.devices)
        and wanted in ("auto", flavour)
        and (flavour != "open" or kernel_takes_open(request.catalog, request.kernel))
    )


def candidates(request: Request) -> tuple[Candidate, ...]:
    """Every branch that works on this host, lowest first."""
    found = []
    settings = request.settings
    for entry in offers(request.catalog, request.distribution, settings.source, settings.build):
        if not all(device.takes_branch(entry.branch.branch) for device in request.devices):
            continue
        modules = usable_modules(request, entry)
        if modules:
            found.append(Candidate(entry, modules))
    return tuple(found)


def best(request: Request) -> Candidate | None:
    """The conservative choice: the newest supported branch of the longest-lived kind.

    If all are end of life, the newest that was long-term or production. The date of the catalog
    decides about end of life, so that a choice never changes by itself.
    """

    def rank(candidate: Candidate) -> tuple[bool, int, int]:
        branch = candidate.offer.branch
        alive = not is_over(branch, request.catalog.branches.as_of)
        cared_for = {"lts": 2, "production": 1}.get(branch.kind, 0)
        return alive, cared_for if alive else min(cared_for, 1), branch.branch

    return max(candidates(request), key=rank, default=None)


def prefer(request: Request, branch: int, modules: tuple[Modules, ...]) -> Modules:
    """One of the usable flavours: that of the installed driver of this branch, else open for new
    branches and for unknown GPUs."""
    if len(modules) == 1:
        return modules[0]
    for flavour in modules:
        if request.installed == (str(branch), flavour):
            return flavour
    unknown = any(device.generation is None for device in request.devices)
    rules = request.catalog.branches.open_modules
    return "open" if unknown or branch >= rules.default_from else "proprietary"


def advice(request: Request) -> str:
    """The setting with which the host gets a driver, as a sentence."""
    chosen = best(request)
    if chosen:
        without = " and remove driver_version" if request.settings.version else ""
        return f'Set driver_branch = "{chosen.offer.branch.branch}"{without} for this host.'
    other = {"nvidia": "distro", "distro": "nvidia"}[request.settings.source]
    for key, value in (("modules", "auto"), ("build", "dkms"), ("source", other)):
        if getattr(request.settings, key) != value and best(request.having(**{key: value})):
            return f'Set driver_{key} = "{value}" for this host.'
    if best(request.having(modules="auto", build="dkms", source=other)):
        return (
            f'Set driver_source = "{other}" and remove driver_modules and driver_build '
            "for this host."
        )
    return f"Move {names(request.devices) or 'it'} to a distribution that has a branch for it."
