"""Findings about the driver on a host: its state, obstacles, and failures of its steps."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

OPERATOR_DRIVER = blocker(
    "GF511",
    "Driver managed by the GPU Operator",
    "The GPU Operator's driver container runs here (/run/nvidia/driver); two drivers cannot share "
    "one kernel.",
    "Set driver_enabled = False for this host, or driver.enabled=false in the GPU Operator.",
)

DRIVER_KEPT = warning(
    "GF149",
    "Installed driver is kept",
    "Driver {installed} is installed and {state}; {who} {wanted}. A plain run does not "
    "change an installed driver to another one.",
    "To change it host by host, canaries first: `gpufleet upgrade INVENTORY{options}`. To change "
    "it in this run, on all hosts at once: `gpufleet apply INVENTORY --allow-driver-change` "
    "(driver_allow_change = True). To stay, set {stay}.",
)

OTHER_PACKAGES = warning(
    "GF512",
    "Driver packages from another source",
    "Driver packages that gpufleet did not install conflict with the configured driver: "
    "{packages}.",
    "To keep them, set driver_enabled = False. Otherwise the transaction that installs the "
    "configured driver replaces or removes them. It installs no libnvidia-nscq and nvidia-imex of "
    "another branch: if you use them, install those of the new driver afterwards.",
)

FOREIGN_DRIVER = blocker(
    "GF146",
    "Driver that is not from packages",
    "Driver {version} is not from a package: {evidence}. Packages would install a second driver "
    "beside it.",
    "To use this driver, set driver_enabled = False for this host. To replace it, remove it with "
    "what installed it ({tool}), reboot, then run again.",
)

OTHER_SOURCE = blocker(
    "GF147",
    "Driver from packages that gpufleet does not replace",
    "The driver here is from {packages}. The configured driver would be installed beside these "
    "packages and its module loaded instead of theirs.",
    "To use this driver, set driver_enabled = False for this host. To replace it, remove "
    "{packages} with the package manager, reboot, then run again.",
)

OWNER_UNKNOWN = blocker(
    "GF148",
    "Source of the driver is not known",
    "A driver is here ({files}), and the package manager did not say whether a package has it: its "
    "database is missing, damaged or not readable. Packages might overwrite a driver of another "
    "source.",
    "Run `{command}` on the host, repair what it reports, then run again. To use this driver, set "
    "driver_enabled = False for this host.",
)

NO_HEADERS = info(
    "GF521",
    "Kernel headers are missing",
    "No headers are installed for the running kernel {kernel}, so DKMS cannot build a module.",
    "`gpufleet apply` installs {packages}.",
)

SECURE_BOOT = blocker(
    "GF522",
    "Secure Boot rejects unsigned modules",
    "Secure Boot is enabled, and DKMS signs modules here with a key that is not enrolled, so the "
    "kernel would reject them.",
    "Enrol the key (mokutil --import, then confirm at the console) and set driver_mok_enrolled = "
    "True; or {signed}disable Secure Boot.",
    advice="Enrol the key (mokutil --import, then confirm at the console) and set "
    "driver_mok_enrolled = True; or disable Secure Boot. Where the distribution's archive has "
    'signed modules, as on Ubuntu, driver_build = "precompiled" with driver_source = "distro" '
    "installs these.",
)
SIGNED_MODULES = 'use driver_build = "precompiled" with driver_source = "distro"; or '

NOUVEAU_LOADED = warning(
    "GF523",
    "Another driver is bound to the GPU",
    "The kernel driver {module} is loaded; the nvidia module cannot bind to the GPU while it is.",
    "`gpufleet apply` blacklists it and tries to unload it. If it is in use, a reboot is required "
    '(node_reboot = "if_needed" allows gpufleet to reboot).',
)

REBOOT_NEEDED = warning(
    "GF524",
    "Reboot required",
    "{why}.",
    'Reboot the host when convenient, or set node_reboot = "if_needed". `gpufleet upgrade` reboots '
    "with GPU work drained.",
    description="What is installed on the host is not what runs: a newer kernel, or a driver whose "
    "modules cannot be loaded into the running kernel. The message gives the reason: the old "
    "modules are in use, or another driver is bound to the GPU.",
)

GPU_BUSY = blocker(
    "GF530",
    "GPUs are in use",
    "Changing the driver from {before} to {after} would interrupt running GPU work ({work}).",
    "Run `gpufleet upgrade`, which waits for the work and drains nodes; or stop it and run again; "
    "or set driver_allow_disruption = True for this host to let the work be killed.",
)

MIG_DEVICES = blocker(
    "GF154",
    "MIG devices would be destroyed",
    "The host has {devices:MIG device|MIG devices}. A change of the driver unloads its modules, "
    "which destroys MIG devices; only a layout of gpu_mig is made again.",
    "Write the layout down (`nvidia-smi mig -lgi`), set it as gpu_mig and run `gpufleet apply` "
    "before the change. If you or a unit of yours creates the devices again, set "
    "driver_allow_mig_loss = True for this host instead.",
    description="`nvidia-smi -L` lists MIG devices. Unloading the nvidia module destroys all GPU "
    "instances; from Hopper on, the MIG mode is lost, too. Neither `apply` nor `upgrade` unloads "
    "the module of such a host unless the key allows it, or gpu_mig has the layout. A reboot that "
    "you request (`gpufleet upgrade --reboot`) has the same effect and is not refused.",
)

LOWER_DRIVER = blocker(
    "GF532",
    "Driver downgrade not requested",
    "Driver {there} is {how}, and this run would replace it with {wanted}, which is older. A "
    "downgrade requires an exact driver_version. Nothing was changed.",
    'To stay on it, set driver_branch = "{branch}" (or driver_version = "{there}") for this host '
    "in the inventory: --data applies to a single run. To downgrade, set driver_version to an "
    "exact version{example}.",
)

GPU_WORK_BEGAN = blocker(
    "GF534",
    "GPU work started during the run",
    "GPU work started after the host was examined; unloading the driver or rebooting would kill "
    "it. The driver was not changed; the processes are listed below.",
    "Run again when the work has finished; or set driver_allow_disruption = True to let it be "
    "killed.",
)

MODULE_REFUSED = blocker(
    "GF551",
    "Kernel rejected the module",
    "modprobe nvidia failed.",
    "`Key was rejected`: Secure Boot (GF522). `No such device`: another driver is bound to the "
    "GPU (GF523), or the driver does not support this GPU. `Exec format error`: built for another "
    "kernel; `dkms status` names the module, `dkms install --force NAME/VERSION` builds it again.",
)

MODULE_BUSY = blocker(
    "GF552",
    "Modules cannot be unloaded",
    "The loaded nvidia modules are in use and cannot be unloaded. Nothing was changed.",
    "Stop the processes that use the GPUs (fuser -v /dev/nvidia*). Or, to change the driver, set "
    'node_reboot = "if_needed"; to remove it, set driver_allow_disruption = True: the modules then '
    "stay loaded until the next boot.",
)

VERSIONS_DISAGREE = blocker(
    "GF555",
    "Packages, module and library versions differ",
    "After the installation, packages, loaded module and library are not all at {version}.",
    "Run `gpufleet doctor INVENTORY --limit HOST` to see which of them differs, and why.",
)

GPUS_NOT_FOUND = blocker(
    "GF153",
    "Driver does not find the GPUs",
    "Driver {version} is loaded, and nvidia-smi does not list {gpus:GPU|GPUs}.",
    "Look for `NVRM` in `dmesg` on the host: the driver does not support the GPU, or could not "
    "start it. A GPU that fell off the bus requires a cold reboot, or service.",
)

INITRAMFS_STALE = blocker(
    "GF556",
    "initramfs was not rebuilt",
    "The initramfs of the running kernel could not be rebuilt {how}.",
    "Rebuild it manually (update-initramfs -u, dracut --force), read the output, then run again.",
)

GPU_BUSY_REMOVAL = blocker(
    "GF563",
    "GPUs are in use",
    "Removing the driver would interrupt running GPU work ({work}).",
    "Stop the work first, or set driver_allow_disruption = True to let it be killed.",
)
