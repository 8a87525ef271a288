"""Findings about faults of GPUs and of their driver."""

from __future__ import annotations

from gpufleet.core.findings import warning

FAILS_RUNS = " `plan` and `apply` report it as a blocker unless a step of the run repairs it."

VERSION_MISMATCH = warning(
    "GF520",
    "Loaded and installed driver differ",
    "The loaded nvidia module is {loaded}, {installed} is installed. NVML and CUDA fail where "
    "module and library differ.",
    "{remedy}",
    description="The loaded nvidia module and the installed driver have different versions. NVML "
    "and CUDA fail where module and library differ." + FAILS_RUNS,
    advice="Run `gpufleet apply`: it loads the matching module, or reports what keeps the old one "
    "in use. With driver_enabled = False, reboot the host. If packages of another source installed "
    "the library, remove them.",
)
LOAD_MATCHING = (
    "Run `gpufleet apply`: it loads the matching module, or reports what keeps the old one in use. "
    "With driver_enabled = False, reboot the host."
)
REMOVE_LIBRARY = (
    "Remove {packages} from the host, which installed the library of {version}, then run "
    "`gpufleet apply`."
)
REMOVE_PACKAGES = (
    "The GPU Operator's container loaded the module. Remove the driver's packages from the host, "
    "and keep unattended upgrades from installing them again."
)

GPU_LOST = warning(
    "GF725",
    "GPU is missing or does not respond",
    "{count} {what}: {slots}.",
    "Look for `NVRM: Xid` in `dmesg`. A GPU that fell off the bus requires a cold reboot, or "
    "service. `gpufleet verify` checks every GPU.",
    description="The driver has a GPU that the PCI bus no longer has, or the registers of a GPU "
    "cannot be read." + FAILS_RUNS,
)

GPU_UNBOUND = warning(
    "GF727",
    "GPU without its driver",
    "The nvidia module is loaded, and {count} not bound to it: {slots}.",
    "Look for `NVRM` in `dmesg`: the driver does not support the GPU, or could not start it.",
    description="The nvidia module is loaded, and a GPU is not bound to it." + FAILS_RUNS,
)

NOT_LOADED = warning(
    "GF150",
    "Driver is not loaded",
    "Driver {version} is installed, and its module is not loaded into the running kernel {kernel}: "
    "no GPU of the host works.",
    "Run `gpufleet apply`: it loads the module, or reports why it cannot. With driver_enabled = "
    "False, look for the reason in `modprobe nvidia` and `dmesg` on the host.",
    description="A driver is installed, and its module is not loaded into the running kernel: no "
    "GPU of the host works." + FAILS_RUNS,
)

SMI_FAILED = warning(
    "GF151",
    "nvidia-smi reports a fault",
    "nvidia-smi -L {what}.",
    "Look for `NVRM: Xid` in `dmesg`, and run `nvidia-smi` on the host. A GPU that hangs requires "
    "a reset (`nvidia-smi --gpu-reset`) or a cold reboot.",
    description="The nvidia module is loaded, and nvidia-smi fails, does not answer, or lists "
    "fewer GPUs than the driver is bound to." + FAILS_RUNS,
)

TOO_FEW_GPUS = warning(
    "GF152",
    "GPUs are missing",
    "The PCI bus has {found:GPU|GPUs} of NVIDIA; {source} {wanted}.",
    "Check that the cards are seated and powered (lspci -d 10de:), and look for `NVRM: Xid` in the "
    "log of the last boot. If the host is to have fewer, set node_gpus to their number.",
    description="The PCI bus has fewer GPUs of NVIDIA than node_gpus or the record of the last run "
    "says." + FAILS_RUNS,
)
