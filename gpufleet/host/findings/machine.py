"""The host, its kernel, modules, services and the work that runs on it."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

NO_GPU = info(
    "GF501",
    "No NVIDIA GPU",
    "No NVIDIA GPU on the PCI bus; nothing is installed.",
    "Remove the host from gpu_nodes, or check that the card is seated and powered (lspci -d "
    "10de:).",
)

FACTS_UNREADABLE = blocker(
    "GF502",
    "Unreadable answer from the host",
    "Cannot read the host's answer, {doing}: {problem}.",
    "Try `ssh {host} true` with the user, port and key from the inventory. When that works: "
    "gpufleet doctor INVENTORY --limit {host}",
)

RUNFILE_INSTALLED = blocker(
    "GF510",
    "Driver installed by NVIDIA's .run file",
    "A driver was installed outside the package manager; packages would overwrite its files.",
    "Remove it with `nvidia-uninstall --silent` on the host, then run again.",
)

OPERATOR_DRIVER = blocker(
    "GF511",
    "Driver managed by the GPU Operator",
    "The GPU Operator's driver container runs here (/run/nvidia/driver); two drivers cannot share "
    "one kernel.",
    "Set driver_enabled = False for this host, or driver.enabled=false in the GPU Operator.",
)

OTHER_PACKAGES = warning(
    "GF512",
    "Driver packages from another source",
    "Driver packages are installed that gpufleet did not install and that conflict with the "
    "configured driver: {packages}.",
    "They are replaced in the transaction that installs the configured driver. To keep them, set "
    "driver_enabled = False.",
)

FILE_EDITED = warning(
    "GF513",
    "Managed file was edited",
    "{file} differs from what gpufleet wrote and will be replaced. The current content is copied "
    "to /var/lib/gpufleet/backup first.",
    "Move your lines to another file in the same folder, or use the matching setting in the "
    "inventory. --diff shows them.",
)

VERSION_MISMATCH = warning(
    "GF520",
    "Module and library versions differ",
    "The loaded nvidia module is {loaded}, the user-space library is {library}. NVML and CUDA "
    "fail until they match.",
    "Run `gpufleet apply`: it loads the matching module, or reports what keeps the old one in use.",
)

NO_HEADERS = info(
    "GF521",
    "Kernel headers are missing",
    "No headers are installed for the running kernel {kernel}, so DKMS cannot build a module.",
    "gpu_node installs {packages}.",
)

SECURE_BOOT = blocker(
    "GF522",
    "Secure Boot rejects unsigned modules",
    "Secure Boot is enabled, and DKMS signs modules here with a key that is not enrolled, so the "
    "kernel would reject them.",
    "Enrol the key (mokutil --import, then confirm at the console) and set driver_mok_enrolled = "
    'True; or use driver_build = "precompiled" with driver_source = "distro"; or disable Secure '
    "Boot.",
)

NOUVEAU = warning(
    "GF523",
    "Another driver is bound to the GPU",
    "The kernel driver {module} is loaded; the nvidia module cannot bind to the GPU while it is.",
    "gpu_node blacklists it and tries to unload it. If it is in use, a reboot is required "
    '(node_reboot = "if_needed" allows gpufleet to reboot).',
)

REBOOT_NEEDED = warning(
    "GF524",
    "Reboot required",
    "{why}.",
    'Reboot the host when convenient, or set node_reboot = "if_needed".',
    description="The driver's new modules cannot be loaded into the running kernel. The message "
    "gives the reason: the old modules are in use, or another driver is bound to the GPU.",
)

GPU_BUSY = blocker(
    "GF530",
    "GPUs are in use",
    "Changing the driver from {before} to {after} would interrupt running GPU work ({work}).",
    "Stop the work (on a Kubernetes node: kubectl drain), then run again; or set "
    "driver_allow_disruption = True for this host to let the work be killed.",
)

KUBERNETES_GPU_PODS = blocker(
    "GF531",
    "GPU pods run on this Kubernetes node",
    "Changing the driver from {before} to {after} would interrupt {pods} pods that use GPUs on "
    "this node.",
    "Drain the node: kubectl drain NODE --ignore-daemonsets --delete-emptydir-data; run again, "
    "then kubectl uncordon NODE. Or set driver_allow_disruption = True for this host to let the "
    "pods be killed.",
)

LOWER_DRIVER = blocker(
    "GF532",
    "Driver downgrade not requested",
    "Driver {there} is {how}, and this run would replace it with the older {wanted}. A downgrade "
    "requires an exact driver_version. Nothing was changed.",
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

REBOOT_PUT_OFF = blocker(
    "GF535",
    "Reboot would kill GPU work",
    "The driver is installed and requires a reboot to load, but GPU work started during the run: "
    "{work}. The host was not rebooted.",
    "Run again when the work has finished; or set driver_allow_disruption = True to let "
    "it be killed.",
)

DISK_SPACE = blocker(
    "GF540",
    "Not enough disk space",
    "{path} has {free} MB free; the installation needs about {needed} MB.",
    "Free some space (apt-get clean, yum clean all, old kernels), then run again.",
)

CLOCK_SKEW = warning(
    "GF541",
    "Clock skew",
    "The host's clock is {seconds} seconds {direction} this machine's: signatures and "
    "certificates appear expired or not yet valid.",
    "Set the clock: timedatectl set-ntp true, or chronyc makestep.",
)

MODULE_NOT_BUILT = blocker(
    "GF550",
    "Kernel module was not built",
    "The driver packages are installed, but there is no nvidia module {version} for the running "
    "kernel. The package manager does not fail when DKMS does.",
    "Read /var/lib/dkms/nvidia/{version}/build/make.log on the host. Fix headers or compiler, "
    "then run again to rebuild.",
)

MODULE_REFUSED = blocker(
    "GF551",
    "Kernel rejected the module",
    "modprobe nvidia failed.",
    "`Key was rejected`: Secure Boot (GF522). `No such device`: another driver is bound to the "
    "GPU (GF523), or the driver does not support this GPU. `Exec format error`: built for another "
    "kernel.",
)

MODULE_BUSY = blocker(
    "GF552",
    "Old module is in use",
    "The loaded nvidia module cannot be unloaded, which the new driver requires. Nothing was "
    "changed.",
    "Stop the processes that use the GPUs (fuser -v /dev/nvidia*), or set node_reboot = "
    '"if_needed".',
)

SERVICE_FAILED = blocker(
    "GF553",
    "Service is not active",
    "{service} was started but is not active.",
    "Find the reason with: journalctl -u {service} -n 50",
)

REBOOT_FAILED = blocker(
    "GF554",
    "Host did not come back after the reboot",
    "The host was rebooted and did not report a new boot ID within {seconds} seconds.",
    "Check its console. When the host is up, run again: it continues where it stopped.",
)

VERSIONS_DISAGREE = blocker(
    "GF555",
    "Packages, module and library versions differ",
    "After the installation, packages, loaded module and library are not all at {version}.",
    "Run preflight to see which of them differs, and why.",
)

INITRAMFS_STALE = blocker(
    "GF556",
    "initramfs was not rebuilt",
    "The initramfs of the running kernel does not contain {file}, so {rivals} would load at the "
    "next boot.",
    "Rebuild it manually (update-initramfs -u, dracut --force) and read the output.",
)

NO_RECORD = info(
    "GF560",
    "Nothing installed by gpufleet",
    "The host has no record of anything that gpufleet installed or started to install; nothing is "
    "removed.",
    "Remove anything else manually.",
)

FILE_CHANGED = warning(
    "GF561",
    "Modified file left in place",
    "{path} was written by gpufleet and modified since; it is left in place.",
    "Remove it manually if you do not need it.",
)

STILL_NEEDED = info(
    "GF562",
    "Packages still required",
    "These packages were installed with gpufleet's and stay, because other packages depend on "
    "them: {packages}.",
    "No action required.",
)

GPU_BUSY_REMOVAL = blocker(
    "GF563",
    "GPUs are in use",
    "Removing the driver would interrupt running GPU work ({work}).",
    "Stop the work first, or set driver_allow_disruption = True to let it be killed.",
)
