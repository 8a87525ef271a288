"""The host, its kernel, modules, services and the work that runs on it."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

NO_GPU = Kind(
    "GF501",
    Severity.INFO,
    "No NVIDIA GPU",
    "there is no NVIDIA display device on the PCI bus, so nothing is installed.",
    "Take the host out of gpu_nodes, or see whether the card is seated and switched on (lspci "
    "-d 10de:).",
)

FACTS_UNREADABLE = Kind(
    "GF502",
    Severity.BLOCKER,
    "The host's answer could not be read",
    "the host gave no answer that can be read, {doing}: {problem}.",
    "Try `ssh {host} true` with the user, port and key of the inventory; once that works: "
    "gpufleet doctor INVENTORY --limit {host}",
)

RUNFILE_INSTALLED = Kind(
    "GF510",
    Severity.BLOCKER,
    "Driver installed by NVIDIA's .run file",
    "a driver was installed outside the package manager, and packages would write over its files.",
    "Remove it with `nvidia-uninstall --silent` on the host, then run again.",
)

OPERATOR_DRIVER = Kind(
    "GF511",
    Severity.BLOCKER,
    "Driver of the GPU Operator",
    "the GPU Operator's driver container runs here (/run/nvidia/driver), and two drivers "
    "cannot share "
    "one kernel.",
    "Set driver_enabled = False for this host, or driver.enabled=false in the GPU Operator.",
)

OTHER_PACKAGES = Kind(
    "GF512",
    Severity.WARNING,
    "Driver packages from another source",
    "driver packages are installed that gpufleet did not install and that do not belong to the "
    "wanted "
    "driver: {packages}.",
    "They are replaced in one transaction with the wanted driver. To keep them, set "
    "driver_enabled = "
    "False.",
)

FILE_EDITED = Kind(
    "GF513",
    Severity.WARNING,
    "A file that gpufleet wrote was edited",
    "{file} is not as gpufleet wrote it: this run replaces it. The present content is copied to "
    "/var/lib/gpufleet/backup first.",
    "Move lines of your own to another file of the same folder, or set what they do in the "
    "inventory. --diff shows them.",
)

VERSION_MISMATCH = Kind(
    "GF520",
    Severity.WARNING,
    "Module and library differ",
    "the loaded nvidia module is {loaded}, the user-space library is {library}: NVML and CUDA fail "
    "until they agree.",
    "Run gpu_node: it loads the module that belongs to the library, or says what keeps the old one "
    "busy.",
)

NO_HEADERS = Kind(
    "GF521",
    Severity.INFO,
    "Kernel headers are missing",
    "no headers are installed for the running kernel {kernel}, so DKMS cannot build a module.",
    "gpu_node installs {packages}.",
)

SECURE_BOOT = Kind(
    "GF522",
    Severity.BLOCKER,
    "Secure Boot refuses unsigned modules",
    "Secure Boot is on, and a module that DKMS builds here is signed by a key that the "
    "firmware does "
    "not know, so the kernel would refuse it.",
    "Enrol the key (mokutil --import, then confirm at the console) and set driver_mok_enrolled "
    "= True; "
    'or use driver_build = "precompiled" with driver_source = "distro"; or switch Secure Boot off.',
)

NOUVEAU = Kind(
    "GF523",
    Severity.WARNING,
    "Another driver holds the GPU",
    "the kernel driver {module} is loaded, and the nvidia module cannot bind while it holds "
    "the GPU.",
    "gpu_node keeps it from loading and tries to unload it; when it is in use, a reboot is needed "
    '(driver_reboot = "if_needed" lets gpufleet do it).',
)

REBOOT_NEEDED = Kind(
    "GF524",
    Severity.WARNING,
    "A reboot is needed",
    "{why}.",
    'Reboot the host when it suits you, or set driver_reboot = "if_needed".',
)

GPU_BUSY = Kind(
    "GF530",
    Severity.BLOCKER,
    "GPUs are in use",
    "the driver would change from {before} to {after} under running GPU work ({work}).",
    "Stop the work (on a Kubernetes node: kubectl drain), then run again; or set "
    "driver_allow_disruption = True for this host if the work may be killed.",
)

KUBERNETES_GPU_PODS = Kind(
    "GF531",
    Severity.BLOCKER,
    "GPU pods run on this Kubernetes node",
    "the driver would change from {before} to {after}, and {pods} pods hold GPUs on this node.",
    "Drain the node by hand: kubectl drain NODE --ignore-daemonsets --delete-emptydir-data; then "
    "run again, and kubectl uncordon NODE; or set driver_allow_disruption = True for this host if "
    "the pods may be killed.",
)

LOWER_DRIVER = Kind(
    "GF532",
    Severity.BLOCKER,
    "The driver would move down",
    "driver {there} is {how}, and this run would replace it by {wanted}, which is lower; a driver "
    "moves down only where driver_version asks for it exactly. Nothing was changed.",
    'To keep it, set driver_branch = "{branch}" (or driver_version = "{there}") for this host in '
    "the inventory: what --data sets counts for one run. To move down, set driver_version to an "
    "exact version{example}.",
)

GPU_WORK_BEGAN = Kind(
    "GF534",
    Severity.BLOCKER,
    "GPU work began during the run",
    "after the host was examined, work began on its GPUs, which unloading the driver or a reboot "
    "would end; the driver was not changed. What uses the GPUs follows.",
    "Run again when it has ended; or set driver_allow_disruption = True if it may be killed.",
)

REBOOT_PUT_OFF = Kind(
    "GF535",
    Severity.BLOCKER,
    "The reboot would end GPU work",
    "the driver is installed and only a reboot can load it, and work began on the GPUs during the "
    "run: {work}. The host was not rebooted.",
    "Run gpu_node again when it has ended; or set driver_allow_disruption = True if it may be "
    "killed.",
)

DISK_SPACE = Kind(
    "GF540",
    Severity.BLOCKER,
    "Too little disk space",
    "{path} has {free} MB free, and the installation needs about {needed} MB there.",
    "Free some space (apt-get clean, yum clean all, old kernels), then run again.",
)

CLOCK_SKEW = Kind(
    "GF541",
    Severity.WARNING,
    "The clock is wrong",
    "the host's clock is {seconds} seconds {direction} this machine's: signatures and certificates "
    "look expired or not yet valid.",
    "Set the clock: timedatectl set-ntp true, or chronyc makestep.",
)

MODULE_NOT_BUILT = Kind(
    "GF550",
    Severity.BLOCKER,
    "No kernel module was built",
    "the driver's packages are installed, but there is no nvidia module {version} for the running "
    "kernel; the package manager does not fail when DKMS does.",
    "Read /var/lib/dkms/nvidia/{version}/build/make.log on the host; with headers and compiler in "
    "order, run gpu_node again: it builds anew.",
)

MODULE_REFUSED = Kind(
    "GF551",
    Severity.BLOCKER,
    "The kernel refuses the module",
    "modprobe nvidia failed.",
    "`Key was rejected`: Secure Boot (GF522). `No such device`: another driver holds the GPU "
    "(GF523), "
    "or the driver does not know this GPU. `Exec format error`: built for another kernel.",
)

MODULE_BUSY = Kind(
    "GF552",
    Severity.BLOCKER,
    "The old module is busy",
    "the loaded nvidia module cannot be unloaded, and the new driver needs it gone; nothing was "
    "changed.",
    'Stop what uses the GPUs (fuser -v /dev/nvidia*), or set driver_reboot = "if_needed".',
)

SERVICE_FAILED = Kind(
    "GF553",
    Severity.BLOCKER,
    "A service does not run",
    "{service} was started and is not active.",
    "See why with: journalctl -u {service} -n 50",
)

REBOOT_FAILED = Kind(
    "GF554",
    Severity.BLOCKER,
    "The host did not come back",
    "the host was rebooted and did not answer with a new boot id within {seconds} seconds.",
    "Look at its console. When it is up again, run gpu_node again: it goes on where it stopped.",
)

VERSIONS_DISAGREE = Kind(
    "GF555",
    Severity.BLOCKER,
    "Packages, module and library disagree",
    "after the installation the packages, the loaded module and the library are not all {version}.",
    "Run preflight to see which part is another version, and why.",
)

INITRAMFS_STALE = Kind(
    "GF556",
    Severity.BLOCKER,
    "The initramfs was not rebuilt",
    "the initramfs of the running kernel does not hold {file}, so {rivals} would load at the next "
    "boot.",
    "Rebuild it by hand (update-initramfs -u, dracut --force) and read what it says.",
)

NO_RECORD = Kind(
    "GF560",
    Severity.INFO,
    "No record of an installation",
    "there is no record on this host of anything that gpufleet installed or began to install, so "
    "nothing is removed.",
    "What was installed by other means has to be removed by those means.",
)

FILE_CHANGED = Kind(
    "GF561",
    Severity.WARNING,
    "A file was changed since",
    "{path} was written by gpufleet and changed by somebody since: it stays.",
    "Remove it by hand if it is not wanted.",
)

STILL_NEEDED = Kind(
    "GF562",
    Severity.INFO,
    "Packages that others need by now",
    "these packages came with gpufleet's and stay, because other packages need them: {packages}.",
    "Nothing to do.",
)

GPU_BUSY_REMOVAL = Kind(
    "GF563",
    Severity.BLOCKER,
    "GPUs are in use",
    "the driver would be taken from under running GPU work ({work}).",
    "Stop the work first, or set driver_allow_disruption = True if it may be killed.",
)
