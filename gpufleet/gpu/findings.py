"""Findings about layout and settings of GPUs."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

LAYOUT_UNFIT = blocker(
    "GF481",
    "gpu_mig does not fit the GPU",
    "{problem}.",
    "{remedy}",
    description="The GPU has no MIG, no such profile, or too little room for the layout; or the "
    "host has no GPU with the index. The message names the GPU.",
    advice="Correct gpu_mig; the finding names the GPUs with MIG, or the profiles of the GPU.",
)
MIG_NEEDS_DRIVER = blocker(
    "GF484",
    "Driver too old for MIG",
    "MIG on a {gpu} requires driver {minimum} or newer; this host has or gets {driver}.",
    "Set driver_branch or driver_version to a newer driver, or remove gpu_mig.",
)
SETTING_UNFIT = blocker(
    "GF486",
    "GPU does not take a setting",
    "{key} is {value}; GPU {index} {takes}.",
    "Correct {key}, or remove it for this host.",
)
OTHER_MANAGER = blocker(
    "GF487",
    "Another program manages MIG",
    "{manager} manages the MIG layout of this host, and would undo gpu_mig.",
    "Disable it (`systemctl --no-reload disable nvidia-mig-manager`; in the GPU Operator "
    "migManager.enabled=false), or remove the key gpu_mig.",
)
GPU_HAS_WORK = blocker(
    "GF488",
    "GPUs to be changed are in use",
    "{change} would interrupt running GPU work ({work}).",
    "`gpufleet upgrade start INVENTORY --sharing` changes MIG and ECC of hosts and nodes in use: "
    "it drains them, and waits for work. Or stop the work and run again; driver_allow_disruption "
    "does not apply here.",
)
RESET_NEEDED = blocker(
    "GF489",
    "GPU reset not allowed",
    "{change} requires a reset of {gpus}.",
    "Set gpu_allow_reset = True: idle GPUs are reset, and programs on other GPUs continue. "
    "`gpufleet upgrade start INVENTORY --sharing` drains the hosts and needs no such permission.",
)
GPU_NOT_CHANGED = blocker(
    "GF490",
    "GPU does not accept its layout or settings",
    "A GPU does not have the wanted layout or settings. For each such GPU, what it has now and "
    "nvidia-smi's text follow.",
    "Correct the key, or stop what the text names, and run again.",
)
GPU_WAITS = warning(
    "GF491",
    "GPU settings wait for a reboot",
    "{why}.",
    'Reboot the host, or set node_reboot = "if_needed" and run again.',
    description="A GPU could not be reset, or no driver is loaded. Its MIG mode, ECC or layout "
    "changes at the next boot; the message names the GPU.",
)
LAYOUT_KEPT = info(
    "GF492",
    "Recorded GPU layout stays",
    "No gpu_ key is set; the GPUs keep the layout and settings of an earlier run ({layout}).",
    'To return them to whole GPUs, set gpu_mig = "off" and the limits to "default".',
)
