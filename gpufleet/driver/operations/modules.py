"""Kernel modules: unloaded before a driver changes, required after it, loaded at the end."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra import host

from gpufleet.host.asking import answer, framed
from gpufleet.host.findings import machine as findings
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain, script

Version = Callable[[], str | None]
REBOOT = "reboot "  # how load.sh begins its line when only a reboot can help


@operation
def unload(modules: tuple[str, ...], needed: bool, must: bool, end_work: bool) -> Commands:
    """
    Stop what holds the GPUs and unload the nvidia modules, or change nothing.

    + modules: names for modprobe, to load again when one of them stays
    + needed: a module is loaded that will not fit the new driver
    + must: no reboot is allowed, so a module that stays stops the host
    + end_work: processes that use the GPUs are ended first; else they stop the host
    """
    if not needed:
        host.noop("no module has to go first")
        return
    message = explain(host.name, findings.MODULE_BUSY()) if must else ""
    busy = "" if end_work else explain(host.name, findings.GPU_WORK_BEGAN())
    if end_work:
        yield script("driver/end_work")
    yield script("driver/unload", message, busy, *modules)


@operation
def require_built(needed: bool, module: str, build: str, version: Version) -> Commands:
    """
    See that the running kernel has a module: the package manager does not fail when DKMS does.

    + needed: packages of the driver were installed
    + module: its name for modinfo
    + build: dkms or precompiled
    + version: the driver's, known by then
    """
    if not needed:
        host.noop("the module was there before")
        return
    wanted = version() or ""
    message = explain(host.name, findings.MODULE_NOT_BUILT(version=wanted))
    yield script("driver/require_module", module, wanted, build, message)


@operation
def rebuild_initramfs(file: str, rivals: tuple[str, ...], needed: bool) -> Commands:
    """
    Rebuild the initramfs of the running kernel and see that it holds the blacklist.

    + file: the modprobe configuration that has to be in it
    + rivals: the modules that it keeps from loading
    + needed: the file was written in this run
    """
    if not needed:
        host.noop("the initramfs holds the blacklist")
        return
    message = explain(host.name, findings.INITRAMFS_STALE(file=file, rivals=", ".join(rivals)))
    yield script("driver/initramfs", file, message)


@operation
def load(
    modules: tuple[str, ...],
    version: Version,
    rivals: tuple[str, ...],
    needed: bool,
) -> Commands:
    """
    Load the nvidia modules; the output says `reboot …` where only a reboot can help.

    + modules: names for modprobe
    + version: the driver's, known by then
    + rivals: other drivers of the same GPUs, to be unloaded first
    + needed: the right module is not loaded
    """
    if not needed:
        host.noop("the right modules are loaded")
        return
    message = explain(host.name, findings.MODULE_REFUSED())
    yield framed(script("driver/load", version() or "", message, " ".join(modules), *rivals))


@operation
def compare(version: Version, ready: Callable[[], bool]) -> Commands:
    """
    See that the packages, the loaded module and the user-space library are one version.

    + version: the driver's, known by then
    + ready: whether the driver was to be loaded in this run and needs no reboot
    """
    if not ready():
        host.noop("nothing was loaded in this run")
        return
    wanted = version() or ""
    message = explain(host.name, findings.VERSIONS_DISAGREE(version=wanted))
    yield script("driver/compare", wanted, message)


def reboot_reason(output: list[str]) -> str:
    """Why a reboot is needed, by what `load` printed; "" when it is not."""
    said = answer(output) or []
    return next((line.removeprefix(REBOOT) for line in said if line.startswith(REBOOT)), "")
