"""Kernel modules: unloaded before a driver change, verified after it, loaded at the end."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra import host

from gpufleet.driver.findings import host as findings
from gpufleet.host.asking import answer, framed
from gpufleet.host.findings import MODULE_NOT_BUILT
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain, script
from gpufleet.packages.operations.logs import logged

Version = Callable[[], str | None]
REBOOT = "reboot "  # prefix of load.sh's line if only a reboot can help


@operation
def unload(modules: tuple[str, ...], needed: bool, must: bool, end_work: bool) -> Commands:
    """
    Stop the services that use the GPUs and unload the nvidia modules, or change nothing.

    + modules: names for modprobe, loaded again if one cannot be unloaded
    + needed: a loaded module does not match the new driver
    + must: no reboot is allowed: a module that cannot be unloaded stops the host
    + end_work: end processes that use the GPUs first; otherwise they stop the host
    """
    if not needed:
        host.noop("no module must be unloaded")
        return
    message = explain(host.name, findings.MODULE_BUSY()) if must else ""
    busy = "" if end_work else explain(host.name, findings.GPU_WORK_BEGAN())
    if end_work:
        yield script("driver/end_work")
    yield script("driver/unload", message, busy, *modules)


@operation
def require_built(
    needed: bool, module: str, flavour: str, build: str, version: Version
) -> Commands:
    """
    Verify that the running kernel has a module: package managers ignore a failure of DKMS.

    + needed: packages of the driver were installed
    + module: name for modinfo
    + flavour: open or proprietary
    + build: dkms or precompiled
    + version: the driver's, known when the step runs
    """
    if not needed:
        host.noop("the module exists")
        return
    wanted = version() or ""
    message = explain(host.name, MODULE_NOT_BUILT(version=wanted))
    yield from logged(script("driver/require_module", module, wanted, flavour, build, message))


@operation
def rebuild_initramfs(file: str, rivals: tuple[str, ...], needed: bool) -> Commands:
    """
    Rebuild the initramfs of the running kernel and verify that it contains the blacklist.

    + file: the required modprobe configuration
    + rivals: the blacklisted modules
    + needed: the file was written in this run
    """
    if not needed:
        host.noop("the initramfs contains the blacklist")
        return
    how = f"with {file}: {', '.join(rivals)} would load at the next boot"
    message = explain(host.name, findings.INITRAMFS_STALE(how=how))
    yield script("driver/initramfs", file, message)


@operation
def load(
    modules: tuple[str, ...],
    version: Version,
    flavour: str,
    rivals: tuple[str, ...],
    needed: bool,
) -> Commands:
    """
    Load the nvidia modules; the output has `reboot …` if only a reboot can help.

    + modules: names for modprobe
    + version: the driver's, known when the step runs
    + flavour: open or proprietary
    + rivals: other drivers of the same GPUs, unloaded first
    + needed: the expected module is not loaded
    """
    if not needed:
        host.noop("the expected modules are loaded")
        return
    message = explain(host.name, findings.MODULE_REFUSED())
    words = (version() or "", flavour, message, " ".join(modules))
    yield framed(script("driver/load", *words, *rivals))


@operation
def compare(version: Version, ready: Callable[[], bool]) -> Commands:
    """
    Verify that packages, loaded module and user-space library have the same version.

    + version: the driver's, known when the step runs
    + ready: whether this run loads the driver, without a reboot
    """
    if not ready():
        host.noop("nothing was loaded in this run")
        return
    wanted = version() or ""
    message = explain(host.name, findings.VERSIONS_DISAGREE(version=wanted))
    yield script("driver/compare", wanted, message)


def reboot_reason(output: list[str]) -> str:
    """Why a reboot is needed, from the output of `load`; "" if it is not."""
    said = answer(output) or []
    return next((line.removeprefix(REBOOT) for line in said if line.startswith(REBOOT)), "")
