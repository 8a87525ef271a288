"""Operations on the driver's kernel modules, device files and services on a host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra import host

from gpufleet.driver.findings import host as findings
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.findings import MODULE_NOT_BUILT, SERVICE_FAILED
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import explain_finding, script_command
from gpufleet.packages.operations.transaction import log_progress

Version = Callable[[], str | None]
REBOOT = "reboot "  # prefix of load.sh's line if only a reboot helps


@host_operation
def unload_modules(
    modules: Sequence[str], needed: bool, must: bool, spare: bool, end_work: bool = False
) -> Commands:
    """
    Stop the services that use the GPUs and unload the nvidia modules, or change nothing.

    + modules: names for modprobe, loaded again if one cannot be unloaded
    + needed: a loaded module does not match the new driver, or is removed
    + must: a module that cannot be unloaded stops the host
    + spare: processes that use the GPUs stop the host
    + end_work: end those processes first
    """
    if not needed:
        host.noop("no module must be unloaded")
        return
    message = explain_finding(host.name, findings.MODULE_BUSY()) if must else ""
    busy = explain_finding(host.name, findings.GPU_WORK_BEGAN()) if spare else ""
    if end_work:
        yield script_command("driver/end_work")
    yield script_command("driver/unload", message, busy, *modules)


@host_operation
def require_module(
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
    message = explain_finding(host.name, MODULE_NOT_BUILT(version=wanted))
    words = (module, wanted, flavour, build, message)
    yield from log_progress(script_command("driver/require_module", *words))


@host_operation
def rebuild_initramfs(file: str, needed: bool, gone: bool = False) -> Commands:
    """
    Rebuild the initramfs of the running kernel and verify that it contains the blacklist.

    + file: the modprobe configuration with the blacklist
    + needed: the file was written or removed in this run
    + gone: it must not contain the file
    """
    if not needed:
        host.noop("the initramfs is right")
        return
    how = f"{'without' if gone else 'with'} {file}"
    message = explain_finding(host.name, findings.INITRAMFS_STALE(how=how))
    yield script_command("driver/initramfs", file, message, *(["gone"] if gone else []))


@host_operation
def load_modules(
    modules: tuple[str, ...], version: Version, flavour: str, rivals: tuple[str, ...], needed: bool
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
    message = explain_finding(host.name, findings.MODULE_REFUSED())
    words = (version() or "", flavour, message, " ".join(modules))
    yield frame_command(script_command("driver/load", *words, *rivals))


@host_operation
def compare_driver_versions(version: Version, gpus: int, ready: Callable[[], bool]) -> Commands:
    """
    Verify that packages, loaded module and user-space library have the same version, and that
    nvidia-smi lists the GPUs.

    + version: the driver's, known when the step runs
    + gpus: number of GPUs that the driver must find
    + ready: True if this run loads the driver, without a reboot
    """
    if not ready():
        host.noop("nothing was loaded in this run")
        return
    wanted = version() or ""
    message = explain_finding(host.name, findings.VERSIONS_DISAGREE(version=wanted))
    lost = explain_finding(host.name, findings.GPUS_NOT_FOUND(version=wanted, gpus=gpus))
    yield script_command("driver/compare", wanted, str(gpus), message, lost)


@host_operation
def run_services(units: Sequence[str], ready: Callable[[], bool]) -> Commands:
    """
    Enable and start services, and verify that they keep running.

    + units: services that do not run; empty means no change
    + ready: True if the driver is loaded, as the services need
    """
    if not units or not ready():
        host.noop("they start with the driver after the reboot" if units else "the services run")
        return
    message = explain_finding(host.name, SERVICE_FAILED(service="UNIT"))
    yield script_command("driver/services", message, *units)


@host_operation
def forget_devices(
    modules: Sequence[str], prerequisites: Sequence[str], specs: Sequence[str], units: Sequence[str]
) -> Commands:
    """
    Remove the device files, and the CDI spec that gpufleet created.

    + modules: of the driver that is removed
    + prerequisites: modules of the kernel, loaded for the driver
    + specs: CDI specs that gpufleet created
    + units: units that would recreate them
    """
    if not (specs or modules):
        host.noop("gpufleet created none")
        return
    words = (" ".join(specs), " ".join(units))
    yield frame_command(script_command("driver/remove_devices", *words, *prerequisites))


def reboot_reason(output: list[str]) -> str | None:
    """Why a reboot is needed, from the output of `load_modules`, or None."""
    said = framed_answer(output) or []
    return next((line.removeprefix(REBOOT) for line in said if line.startswith(REBOOT)), None)
