"""Resolves branch, modules and packages of a host's driver, with a reason; action.py decides the
version. Never raises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import Modules
from gpufleet.core.findings import Finding, Severity, by_severity
from gpufleet.core.versions import branch_of
from gpufleet.driver import checks
from gpufleet.driver.catalog import Branch, DriverCatalog, common_modules, devices_of, name_devices
from gpufleet.driver.choice import (
    KIND_TITLES,
    DriverChoice,
    DriverPackages,
    DriverRequest,
    Offer,
    advise_branch,
    best_branch,
    branch_offer,
    prefer_modules,
    usable_modules,
)
from gpufleet.driver.findings import choice as kinds
from gpufleet.driver.packaging import driver_packages, driver_repository, no_packages
from gpufleet.driver.settings import DriverSettings


def resolve_driver(
    catalog: DriverCatalog,
    *,
    distribution: Distribution | str,
    architecture: str,
    kernel: str,
    devices: Sequence[int],
    nvswitch: bool,
    settings: DriverSettings,
    today: date | None = None,
    installed: tuple[str, str] | None = None,
    flavour: str = "",
) -> DriverChoice:
    """Resolve the driver for one host.

    `distribution`: a code if the catalog does not have it; `architecture`, `kernel`: from uname;
    `devices`: PCI device ids of the GPUs. `today` affects only warnings about end of life; the
    choice depends only on the other arguments and the catalog. `installed`: branch and modules of
    the driver on the host, which keeps its modules if they fit its GPUs. `flavour`: of the kernel's
    metapackages, if they are known.
    """
    archive = None if isinstance(distribution, str) else distribution.archive
    choice = DriverChoice(
        branch=settings.branch or "",
        version=settings.version,
        modules="open" if settings.modules == "auto" else settings.modules,
        build=settings.build,
        source=settings.source,
        packages=DriverPackages(),
        repository=None,
        components=archive.components if archive and settings.source == "distro" else (),
    )
    if isinstance(distribution, str):
        known = ", ".join(d.code for d in catalog.distributions)
        finding = kinds.UNKNOWN_DISTRIBUTION(distribution=distribution, known=known)
        return replace(choice, reason=finding.message, findings=(finding,))
    directory = distribution.architectures.get(architecture)
    if directory is None:
        known = ", ".join(distribution.architectures)
        title = distribution.title
        finding = kinds.NO_DRIVER(
            reason=f"NVIDIA has no repository for {title} on {architecture}, only for {known}.",
            remedy="Remove the host from the inventory, or move it to a distribution that NVIDIA "
            f"supports on {architecture}.",
        )
        return replace(choice, reason=finding.message, findings=(finding,))
    off_host = any(gpu.fabric_off_host for id in devices if (gpu := catalog.gpu(id)))
    request = DriverRequest(
        catalog=catalog,
        distribution=distribution,
        directory=directory,
        kernel=kernel,
        devices=devices_of(catalog, devices),
        nvswitch=nvswitch and not off_host,
        settings=settings,
        today=today or date.today(),
        installed=installed,
        flavour=flavour,
    )
    repository, key_findings = driver_repository(request)
    picked = _pick(request, replace(choice, packages=no_packages(request), repository=repository))
    findings = [*picked.findings, *checks.check_platform(request), *key_findings]
    found = picked.offer
    if found and picked.reason:
        number = found.branch.branch
        packages = driver_packages(request, found.packages, number, picked.modules)
        picked = replace(picked, packages=packages)
        findings += checks.warn_of_branch(request, found)
        findings += _about_gpus(request, picked.modules, nvswitch)
        if request.nvswitch and not packages.fabric_manager:
            findings.append(kinds.NO_FABRIC_MANAGER(title=distribution.title))
    reason = picked.reason or next(f.message for f in findings if f.blocks)
    return replace(picked, reason=reason, findings=by_severity(findings))


def _pick(request: DriverRequest, choice: DriverChoice) -> DriverChoice:
    """The choice with a branch, its modules and the reason, or with findings if no branch fits."""
    settings = request.settings
    if settings.source == "distro" and not request.distribution.archive:
        title = request.distribution.title
        reason = f'the catalog has none in the archive of {title} (driver_source = "distro").'
        finding = kinds.NO_DRIVER(reason=reason, remedy='Set driver_source = "nvidia".')
        return replace(choice, findings=(finding,))
    if settings.version:
        picked = _asked_for(request, choice, branch_of(settings.version), "driver_version")
    elif settings.branch:
        picked = _asked_for(request, choice, int(settings.branch), "driver_branch")
    else:
        picked = _default(request, choice)
    return replace(picked, findings=(*checks.check_contradiction(settings), *picked.findings))


def _default(request: DriverRequest, choice: DriverChoice) -> DriverChoice:
    found = best_branch(request)
    if found is None:
        return replace(choice, findings=_nothing_fits(request))
    branch = found.branch
    modules = prefer_modules(request, branch.branch, found.usable)
    fits = " and ".join(filter(None, (request.distribution.title, name_devices(request.devices))))
    reason = (
        f"Branch {branch.branch} is the newest {KIND_TITLES[branch.kind]} for {fits}. "
        f"{_modules_reason(request, found, found.usable, modules)}"
    )
    return replace(choice, branch=str(branch.branch), offer=found, modules=modules, reason=reason)


def _nothing_fits(request: DriverRequest) -> tuple[Finding, ...]:
    """Why no branch fits: a setting that excludes all, or the host itself."""
    settings = request.settings
    any_modules = best_branch(request.having(modules="auto"))
    if any_modules:
        return (checks.explain_modules(request, any_modules),)
    built = best_branch(request.having(build="dkms"))
    if built:
        flavour = prefer_modules(request, built.branch.branch, built.usable)
        return (checks.no_precompiled(request, built.branch.branch, flavour),)
    free = request.having(modules="auto", build="dkms")
    alone = [best_branch(replace(free, devices=(device,))) for device in request.devices]
    if len(request.devices) > 1 and all(alone):
        reason = f"no single driver supports all of its GPUs: {name_devices(request.devices)}."
        remedy = "Move one kind of GPU to another host."
        return (kinds.NO_DRIVER(reason=reason, remedy=remedy),)
    needs = "; ".join(f"{d.title}: {_need(d.first, d.last, d.modules)}" for d in request.devices)
    flavours = "any" if settings.modules == "auto" else settings.modules
    reason = (
        f"{checks.SOURCE_TITLES[settings.source]} for {request.distribution.title}, "
        f"{settings.build}, {flavours} modules{'; ' + needs if needs else ''}."
    )
    return (kinds.NO_DRIVER(reason=reason, remedy=advise_branch(request)),)


def _need(first: int, last: int, modules: tuple[Modules, ...]) -> str:
    limits = [f"from branch {first}"] if first else []
    limits += [f"up to branch {last}"] if last < 9999 else []
    return f"{' '.join(limits) or 'any branch'}, {' or '.join(modules)} modules"


def _asked_for(request: DriverRequest, choice: DriverChoice, number: int, key: str) -> DriverChoice:
    branch, findings = _branch(request, number)
    choice = replace(choice, branch=str(number))
    settings = request.settings
    gpus = tuple(checks.check_gpus(request, number))
    where = (request.catalog, request.distribution, settings.source, settings.build)
    found = branch_offer(*where, branch)
    if found is None:
        missing = checks.not_offered(request, branch)
        if request.installed == (str(number), "proprietary"):
            choice = replace(choice, modules="proprietary")  # a kept driver has no others
        return replace(choice, findings=(*findings, missing, *gpus))
    version = tuple(checks.check_version(request, found))
    usable = usable_modules(request, found)
    if not usable:
        unfit = () if gpus else (checks.explain_modules(request, found),)
        return replace(choice, offer=found, findings=(*findings, *gpus, *unfit, *version))
    modules = prefer_modules(request, number, usable)
    why = _modules_reason(request, found, usable, modules)
    reason = f"Branch {number} is requested ({key}). {why}"
    found_too = (*findings, *gpus, *version)
    return replace(choice, offer=found, modules=modules, reason=reason, findings=found_too)


def _branch(request: DriverRequest, number: int) -> tuple[Branch, tuple[Finding, ...]]:
    """The branch with that number. One that is not in the catalog is treated like the next lower
    one."""
    known = request.catalog.branches
    branch = request.catalog.branch(number)
    if branch:
        return branch, ()
    lower = [entry for entry in known.branches if entry.branch < number]
    like = max(lower, key=lambda entry: entry.branch) if lower else known.branches[0]
    made = Branch(
        branch=number, kind="unknown", newest="", modules=like.modules, source=like.source
    )
    listed = ", ".join(str(entry.branch) for entry in known.branches)
    return made, (checks.not_in_catalog(request, f"branch {number}", f"which has {listed}"),)


def _modules_reason(
    request: DriverRequest, found: Offer, usable: tuple[Modules, ...], chosen: Modules
) -> str:
    title = f"{chosen.capitalize()} modules"
    if request.settings.modules != "auto":
        return f"{title} are requested (driver_modules)."
    if len(usable) > 1 and request.installed == (str(found.branch.branch), chosen):
        return f"{title}: they are installed; driver_modules selects others."
    if len(usable) > 1:
        start = request.catalog.branches.open_modules.default_from
        return f"{title}: NVIDIA's default {'from' if chosen == 'open' else 'before'} {start}."
    if len(common_modules(request.devices)) == 1:
        picky = [device for device in request.devices if len(device.modules) == 1]
        return f"{title}: {name_devices(picky)} cannot use others."
    if len(found.branch.modules) == 1:
        return f"{title}: branch {found.branch.branch} has no others."
    why = found.note or request.distribution.modules_reason
    return f"{title}: no others for {request.distribution.title}. {why}".strip()


def _about_gpus(request: DriverRequest, modules: Modules, nvswitch: bool) -> list[Finding]:
    findings = [
        kinds.UNKNOWN_GPU(
            severity=Severity.INFO if modules == "open" else Severity.WARNING,
            device=device.id,
            date=request.catalog.gpus.as_of,
            modules=modules,
        )
        for device in request.devices
        if device.generation is None
    ]
    if len({d.generation.name for d in request.devices if d.generation}) > 1:
        findings.append(kinds.MIXED_GENERATIONS(gpus=name_devices(request.devices)))
    for device in request.devices:
        if device.known and device.known.fabric_off_host and nvswitch:
            findings.append(kinds.FABRIC_OFF_HOST(gpu=device.title))
        if device.known and device.known.nvlink5:
            findings.append(kinds.NVLINK5(gpu=device.title))
    return findings
