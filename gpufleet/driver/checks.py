"""Findings about a branch or a version: contradictions, limits, warnings."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.core.entries import Modules, Source
from gpufleet.core.findings import Finding, Severity
from gpufleet.core.findings.settings import CONTRADICTION
from gpufleet.core.versions import branch_of, version_tuple
from gpufleet.driver.catalog import BOTH, Branch, name_devices
from gpufleet.driver.choice import (
    DriverRequest,
    Offer,
    advise_branch,
    best_branch,
    branch_offer,
    branch_offers,
    branches_of,
    is_over,
    kernel_takes_open,
)
from gpufleet.driver.findings import choice as kinds
from gpufleet.driver.settings import DriverSettings

SOURCE_TITLES = {"nvidia": "NVIDIA's repository", "distro": "the distribution's own archive"}
OTHER_VERSION = (
    'Set driver_version = "{newest}", or remove it; `gpufleet upgrade` changes a driver that is '
    "installed."
)


def check_platform(request: DriverRequest) -> Iterator[Finding]:
    """Findings about the distribution."""
    distribution = request.distribution
    over = distribution.end_of_life
    if over and over < request.today:
        yield kinds.DISTRIBUTION_OVER(title=distribution.title, date=f"{over:%Y-%m}")
    if not distribution.supported and request.settings.source == "nvidia":
        yield kinds.DISTRIBUTION_DROPPED(title=distribution.title)


def not_offered(request: DriverRequest, branch: Branch) -> Finding:
    """Why a branch has no packages from the requested source with the requested build."""
    distribution, settings = request.distribution, request.settings
    number = branch.branch
    if settings.build == "precompiled" and branch_offer(
        request.catalog, distribution, settings.source, "dkms", branch
    ):
        return no_precompiled(request, number)
    reason, remedy = _limit(request, number), advise_branch(request)
    last = branches_of(distribution).last
    if settings.source == "distro":
        archived = distribution.archive.branches if distribution.archive else ()
        known = ", ".join(str(each.branch) for each in archived) or "none"
        reason = f"Its archive has branches {known}."
    elif last and number > last:
        remedy = f"{remedy.rstrip('.')}, or move it to a newer release."
    return kinds.NOT_INSTALLABLE(
        what=f"branch {number}", where=distribution.title, reason=reason, remedy=remedy
    )


def no_precompiled(request: DriverRequest, branch: int, flavour: str = "") -> Finding:
    """Precompiled modules are requested but not available."""
    source = SOURCE_TITLES[request.settings.source]
    title = request.distribution.title
    return kinds.NO_SUCH_MODULES(
        what=f"precompiled and {flavour}" if flavour else "precompiled",
        reason=f"there are none of branch {branch} for {title} from {source}.",
        remedy='Set driver_build = "dkms".',
    )


def _limit(request: DriverRequest, branch: int) -> str:
    found = branch_offers(request.catalog, request.distribution, "nvidia", "dkms")
    title = request.distribution.title
    if not found:
        return f"NVIDIA's repository has no driver for {title}."
    if branch < found[0].branch.branch:
        return f"NVIDIA's first branch for {title} is {found[0].branch.branch}."
    if branch > found[-1].branch.branch:
        last = found[-1]
        over = last.branch.end_of_life
        since = f", end of life since {over:%Y-%m}" if over and over < request.today else ""
        return f"NVIDIA's last branch for {title} is {last.branch.branch} ({last.newest}{since})."
    return f"It has no packages for {title}."


def check_gpus(request: DriverRequest, branch: int) -> Iterator[Finding]:
    """GPUs that the branch does not support."""
    for device in request.devices:
        if not device.takes_branch(branch):
            yield kinds.NOT_INSTALLABLE(
                what=f"branch {branch}",
                where=f"a host with {device.title}",
                reason=device.limit,
                remedy=advise_branch(request),
            )


def explain_modules(request: DriverRequest, found: Offer) -> Finding:
    """Why no flavour of kernel modules of this branch works here."""
    wanted = request.settings.modules
    if wanted != "auto":
        other = "proprietary" if wanted == "open" else "open"
        return kinds.NO_SUCH_MODULES(
            what=wanted,
            reason=_why_not(request, found, wanted),
            remedy=f'Set driver_modules = "{other}" or "auto".',
        )
    reasons = [f"{each.capitalize()}: {_why_not(request, found, each)}" for each in BOTH]
    reason = f"branch {found.branch.branch} has no kernel modules for it. {' '.join(reasons)}"
    return kinds.NO_DRIVER(reason=reason, remedy=advise_branch(request))


def _why_not(request: DriverRequest, found: Offer, flavour: Modules) -> str:
    distribution, branch = request.distribution, found.branch
    unfit = [device for device in request.devices if flavour not in device.modules]
    if unfit:
        return f"{name_devices(unfit)} cannot use them."
    if flavour not in distribution.modules:
        return f"{distribution.title} cannot have them. {distribution.modules_reason}".strip()
    if flavour not in branch.modules:
        return f"branch {branch.branch} has none."
    if flavour not in found.modules:
        return f"they have no packages for {distribution.title}. {found.note}".strip()
    if flavour == "open" and not kernel_takes_open(request.catalog, request.kernel):
        minimum = request.catalog.branches.open_modules.minimum_kernel
        return f"kernel {request.kernel} is older than {minimum}."
    return "another setting excludes them."


def check_version(request: DriverRequest, found: Offer) -> Iterator[Finding]:
    """Findings about the exact version in the settings."""
    exact, branch = request.settings.version, found.branch
    if exact is None:
        return
    ceiling = request.distribution.ceiling if request.settings.source == "nvidia" else ""
    if ceiling and version_tuple(exact) > version_tuple(ceiling):
        yield kinds.NOT_INSTALLABLE(
            what=exact,
            where=request.distribution.title,
            reason=f"The last version built for it is {ceiling}.",
            remedy=f'Set driver_version = "{ceiling}" for this host, or remove it.',
        )
        return
    known = tuple(dict.fromkeys((*branch.versions, branch.newest, found.newest)))
    if exact not in known:
        like = ", ".join(each for each in known if each.startswith(exact))
        newest = f"whose newest of branch {branch.branch} is {found.newest or 'unknown'}"
        # the catalog lacks some older versions: the repository decides if one exists
        whole = not like and exact.count(".") >= (found.newest or "").count(".")
        yield not_in_catalog(request, exact, f"which has {like}" if like else newest, whole=whole)


def not_in_catalog(
    request: DriverRequest, what: str, known: str, *, whole: bool = False
) -> Finding:
    """The finding about an unknown branch or version: a blocker unless the settings allow its end.
    `whole`: it is a complete version of a known branch."""
    severity = Severity.WARNING if whole or request.settings.allow_unknown else None
    date = request.catalog.branches.as_of
    remedy = kinds.ASK_FOR_IT if whole else kinds.ALLOW_IT
    return kinds.NOT_IN_CATALOG(severity=severity, what=what, date=date, known=known, remedy=remedy)


def check_contradiction(settings: DriverSettings) -> Iterator[Finding]:
    """Findings if driver_version contradicts driver_branch."""
    if settings.version and settings.branch and str(branch_of(settings.version)) != settings.branch:
        first = f'driver_version = "{settings.version}"'
        second = f'driver_branch = "{settings.branch}"'
        yield CONTRADICTION(first=first, second=second, problem="the version is of another branch")


def warn_of_branch(request: DriverRequest, found: Offer) -> Iterator[Finding]:
    """End of life, vulnerabilities and known problems of the chosen branch."""
    branch = found.branch
    exact = request.settings.version or found.newest
    security = request.catalog.branches.security.title
    if is_over(branch, request.today):
        yield branch_over(branch, _newer(request))
    if is_vulnerable(exact, branch):
        remedy = _newer(request) if branch.insecure else OTHER_VERSION.format(newest=branch.newest)
        what = f"branch {branch.branch}" if branch.insecure else exact
        yield insecure_driver(branch, what, security, remedy)
    if branch.warning:
        yield kinds.BRANCH_PROBLEM(branch=branch.branch, problem=branch.warning)


def branch_over(branch: Branch, remedy: str) -> Finding:
    """The finding about a branch after its end of life."""
    over = branch.end_of_life
    date = f"since {over:%Y-%m}" if over else "date unknown"
    return kinds.BRANCH_OVER(branch=branch.branch, date=date, remedy=remedy)


def is_vulnerable(version: str, branch: Branch) -> bool:
    """True if a version of the branch has known vulnerabilities."""
    floor = branch.floor
    return branch.insecure or (bool(floor) and version_tuple(version) < version_tuple(floor))


def insecure_driver(branch: Branch, what: str, source: str, remedy: str) -> Finding:
    """The finding about a vulnerable version, or about a branch without a fixed version."""
    fix = f"They are fixed in {branch.floor}."
    if branch.insecure:
        fix = "No fixed version of it is known."
    return kinds.INSECURE(what=what, source=source, fix=fix, remedy=remedy)


def _newer(request: DriverRequest) -> str:
    """The way to get a supported branch, as a sentence."""
    free = request.having(branch=None, version=None, modules="auto", build="dkms")
    other: Source = "nvidia" if request.settings.source == "distro" else "distro"
    for source in (request.settings.source, other):
        found = best_branch(free.having(source=source))
        if found and not is_over(found.branch, request.today):
            setting = f'driver_branch = "{found.branch.branch}"'
            if source == other:
                setting = f'driver_source = "{other}" and {setting}'
            return f"Set {setting} for this host."
    return "No branch for this host still gets fixes: plan to replace the system or the GPUs."
