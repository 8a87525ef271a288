"""Compares installed versions with the catalog: end of life, vulnerabilities, newer ones. Pure.

The findings of a plan are about versions that a run would install; these are about the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.versions import version_tuple
from gpufleet.driver.catalog import devices_of
from gpufleet.driver.checks import branch_over, insecure_driver, is_vulnerable
from gpufleet.driver.choice import branch_offer, is_over
from gpufleet.driver.files import own_gpus
from gpufleet.driver.findings import choice as of_driver
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import Catalog
from gpufleet.node.settings import NodeSettings
from gpufleet.status import findings
from gpufleet.status.models import Note
from gpufleet.toolkit.resolve import insecure_toolkit, resolve_toolkit
from gpufleet.toolkit.settings import ToolkitSettings

OTHER_BRANCH = (
    "Set driver_branch to one that gets fixes (`gpufleet catalog driver` names it), then "
    "`gpufleet upgrade`."
)
OTHER_MODULES = (
    "Remove driver_modules and driver_branch from the settings, or set what `gpufleet catalog "
    "driver` names for the GPU, then run `gpufleet apply`."
)
NEWER_DRIVER = "`gpufleet upgrade INVENTORY --to {newest}` changes it."
FOREIGN_DRIVER_REMEDY = (
    "Update it with what installed it: the image, an installer, a cloud's agent."
)
NEWER_TOOLKIT = (
    'Set toolkit_version = "{newest}", or remove it, then `gpufleet upgrade INVENTORY --toolkit`.'
)


class Minor(Sourced):
    """A minor version of a runtime."""

    minor: str
    end_of_life: date | None = None
    floor: str = ""  # lowest version without a known vulnerability
    insecure: bool = False  # vulnerable, and no fixed version of the minor is known


class MaintainedRuntime(Sourced):
    """A container runtime in its makers' packages, with the versions that they maintain."""

    name: str
    packages: tuple[str, ...]
    minors: tuple[Minor, ...]

    def minor_of(self, version: str) -> Minor | None:
        """The entry of a version, or None if the catalog does not have it."""
        short = ".".join(version.split(".")[:2])
        return next((entry for entry in self.minors if entry.minor == short), None)


class MaintainedRuntimes(Entry):
    """runtime_support.yaml"""

    as_of: date
    runtimes: tuple[MaintainedRuntime, ...]


load_runtimes = entry_loader(MaintainedRuntimes, "status/runtime_support")


def about_system(facts: NodeFacts, today: date) -> Iterator[Note]:
    """Findings about the distribution."""
    place = facts.distribution
    over = place.end_of_life if place else None
    if place and over and over < today:
        finding = of_driver.DISTRIBUTION_OVER(title=place.title, date=f"{over:%Y-%m}")
        yield Note("end-of-life", finding)


def about_driver(
    version: str, facts: NodeFacts, settings: NodeSettings | None, catalog: Catalog, today: date
) -> Iterator[Note]:
    """Findings about the installed driver version."""
    numbers = version_tuple(version)
    branch = catalog.branch(numbers[0]) if numbers else None
    if branch is None:
        return
    wanted = settings.of(DRIVER) if settings else DriverSettings.model_validate({})
    place = facts.distribution
    offer = place and branch_offer(catalog, place, wanted.source, wanted.build, branch)
    newest = offer.newest if offer else ""  # in the host's repository
    planned = _planned_remedies(version, facts, wanted, catalog, today)
    if is_over(branch, today):
        remedy = planned.get(of_driver.BRANCH_OVER.code, OTHER_BRANCH)
        yield Note("end-of-life", branch_over(branch, _driver_remedy(facts, remedy)))
    if is_vulnerable(version, branch):
        what, remedy = version, NEWER_DRIVER.format(newest=newest or branch.floor)
        if branch.insecure:
            what = f"{version} of branch {branch.branch}"
            remedy = planned.get(of_driver.INSECURE.code, OTHER_BRANCH)
        source, remedy = catalog.branches.security.title, _driver_remedy(facts, remedy)
        yield Note("vulnerable", insecure_driver(branch, what, source, remedy))
    if newest and numbers < version_tuple(newest):
        remedy = _driver_remedy(facts, NEWER_DRIVER.format(newest=newest))
        newer = findings.BEHIND(what="Driver", version=version, newest=newest, remedy=remedy)
        yield Note("version", newer)


def about_fit(version: str, facts: NodeFacts, catalog: Catalog) -> Iterator[Note]:
    """A finding for each GPU that the driver cannot run, if nvidia-smi does not list all GPUs."""
    own = own_gpus(facts)
    listed = facts.listed
    if listed and not listed.error and listed.gpus >= len(own):
        return
    branch, *_ = (*version_tuple(version), 0)
    flavour = facts.loaded_flavour or facts.installed_flavour
    for device in devices_of(catalog, [gpu.device for gpu in own]):
        what, why = "", ""
        if not device.takes_branch(branch):
            what, why = f"The driver {version}", device.limit
        elif flavour and flavour not in device.modules:
            what, why = f"The {flavour} kernel module", f"it needs {device.modules[0]} ones."
        if what:
            remedy = FOREIGN_DRIVER_REMEDY if facts.foreign_driver else OTHER_MODULES
            finding = findings.UNFIT_DRIVER(what=what, gpu=device.title, why=why, remedy=remedy)
            yield Note("gpu-fault", finding)


def _planned_remedies(
    version: str, facts: NodeFacts, wanted: DriverSettings, catalog: Catalog, today: date
) -> dict[str, str]:
    """The remedies of a plan that installs exactly this version, by code of the finding."""
    choice = resolve_driver(
        catalog,
        distribution=facts.distribution or facts.os.code,
        architecture=facts.kernel.architecture,
        kernel=facts.kernel.release,
        devices=[gpu.device for gpu in facts.gpus],
        nvswitch=bool(facts.nvswitches),
        settings=wanted.model_copy(update={"version": version, "branch": None}),
        today=today,
    )
    return {finding.code: finding.remedy for finding in choice.findings}


def _driver_remedy(facts: NodeFacts, ours: str) -> str:
    """The remedy `ours`, unless the driver has no packages: then GF146 blocks an upgrade."""
    return FOREIGN_DRIVER_REMEDY if facts.foreign_driver else ours


def about_toolkit(version: str, facts: NodeFacts, catalog: Catalog) -> Iterator[Note]:
    """Findings about the installed version of the container toolkit."""
    number = version_tuple(version)
    for finding in insecure_toolkit(version, catalog.toolkit):
        yield Note("vulnerable", finding)
    choice = resolve_toolkit(
        catalog,
        distribution=facts.distribution or facts.os.code,
        architecture=facts.kernel.architecture,
        settings=ToolkitSettings.model_validate({}),
    )
    if not choice.blocked and number < version_tuple(choice.version):
        remedy = NEWER_TOOLKIT.format(newest=choice.version)
        what = "Container toolkit"
        newer = findings.BEHIND(what=what, version=version, newest=choice.version, remedy=remedy)
        yield Note("version", newer)


def about_runtimes(facts: NodeFacts, today: date) -> Iterator[Note]:
    """Findings about container runtimes that come in their makers' packages."""
    for known in load_runtimes().runtimes:
        runtime = facts.runtimes.get(known.name)
        package = next((name for name in known.packages if name in facts.packages), None)
        if runtime is None or package is None:
            continue
        minor = known.minor_of(runtime.version)
        if minor is None:
            continue
        if minor.end_of_life and minor.end_of_life < today:
            why = f"reached its end of life on {minor.end_of_life.isoformat()}"
            newer = "a newer minor version, which gets fixes"
            over = findings.RUNTIME_OLD(package=package, version=minor.minor, why=why, fixed=newer)
            yield Note("end-of-life", over)
        fixed = f"{minor.floor} or newer" if minor.floor else "a minor version that gets fixes"
        below = minor.floor and version_tuple(runtime.version) < version_tuple(minor.floor)
        if minor.insecure or below:
            finding = findings.RUNTIME_OLD(
                package=package,
                version=runtime.version,
                why="has known vulnerabilities",
                fixed=fixed,
            )
            yield Note("vulnerable", finding)
