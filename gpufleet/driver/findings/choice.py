"""Findings about the driver choice: distribution, branch, version, modules and packages."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

UNKNOWN_DISTRIBUTION = blocker(
    "GF101",
    "Unsupported distribution",
    "Distribution {distribution} is not in the catalog. Supported: {known}.",
    "Run `gpufleet catalog distributions` to see what each one supports.",
)

DISTRIBUTION_OVER = warning(
    "GF103",
    "Distribution is end of life",
    "{title} reached its end of life on {date}: its kernel and libraries no longer receive fixes.",
    "Plan the move to a newer release.",
)

DISTRIBUTION_DROPPED = info(
    "GF104",
    "Distribution no longer supported by NVIDIA",
    "{title} is not in NVIDIA's current list of supported distributions.",
    "No action required; new driver branches will not be available for it.",
)

UNKNOWN_KEY_FINGERPRINT = blocker(
    "GF105",
    "Unknown fingerprint of the repository key",
    "The catalog has no fingerprint for {file}, the key of NVIDIA's repository for {title}, so "
    "the key cannot be verified.",
    "Get the fingerprint from a source you trust and set driver_repo_key_fingerprint to it.",
)

MIXED_GENERATIONS = info(
    "GF117",
    "GPUs of several generations",
    "This host has GPUs of several generations ({gpus}); a driver that supports all of them was "
    "selected.",
    "No action required.",
)

ALLOW_IT = (
    "Correct it: `gpufleet catalog branches` lists what is known. To install a newer driver, such "
    "as one of your own repository, set driver_allow_unknown = True; try it on one host first."
)
ASK_FOR_IT = (
    "The host's repositories decide whether it exists: a run asks them before it changes a driver. "
    "To ask them now, set driver_version to it and run `gpufleet plan INVENTORY --check "
    "--allow-driver-change`."
)
NOT_IN_CATALOG = blocker(
    "GF111",
    "Driver not in the catalog",
    "Driver {what} is not in the catalog of {date}, {known}.",
    "{remedy}",
    advice=f"{ALLOW_IT} A complete version of a known branch is only a warning: the host's "
    "repositories decide whether it exists.",
)

NOT_INSTALLABLE = blocker(
    "GF112",
    "Driver cannot be installed on the host",
    "Driver {what} cannot be installed on {where}. {reason}",
    "{remedy}",
    advice="Set driver_branch to one that the distribution and the GPU support, or move the host "
    "to a newer distribution; the finding names the branch.",
)

NO_DRIVER = blocker(
    "GF115",
    "No driver for this host",
    "There is no driver for this host: {reason}",
    "{remedy}",
    advice="Change the distribution or the GPU, or the setting that the message names.",
)

INSECURE = warning(
    "GF120",
    "Driver with known vulnerabilities",
    "Driver {what} has known vulnerabilities ({source}). {fix}",
    "{remedy}",
    advice="Set driver_version to the version with the fixes, or driver_branch to a supported "
    "branch; the finding names it.",
)

BRANCH_OVER = warning(
    "GF121",
    "Driver branch is end of life",
    "Driver branch {branch} reached its end of life ({date}) and no longer receives fixes.",
    "{remedy}",
    advice="Set driver_branch to a supported branch; the finding names one.",
)

BRANCH_PROBLEM = warning(
    "GF122",
    "Known problem of the driver branch",
    "Driver branch {branch} has a known problem. {problem}",
    "Use another branch unless you have tested this one on your GPUs.",
)

NO_SUCH_MODULES = blocker(
    "GF130",
    "Requested kernel modules not available",
    "Kernel modules that are {what} cannot be used: {reason}",
    "{remedy}",
    advice="Remove driver_modules or driver_build; the finding names the setting.",
)

UNKNOWN_GPU = info(
    "GF133",
    "GPU not in the catalog",
    "The GPU with PCI ID 10de:{device:04x} is not in the catalog of {date}; gpufleet assumes a "
    "newer GPU and uses {modules} modules.",
    "If the driver does not detect the GPU, set driver_branch or driver_modules, or update "
    "gpufleet.",
)

NO_FABRIC_MANAGER = blocker(
    "GF143",
    "No fabric manager for a host with NVSwitch",
    "This host has an NVSwitch, but the archive of {title} has no fabric manager: CUDA would fail "
    "with error 802.",
    'Set driver_source = "nvidia".',
)

FABRIC_OFF_HOST = info(
    "GF144",
    "NVSwitch fabric managed outside the host",
    "The NVSwitches of {gpu} are managed outside the host; no fabric manager is installed.",
    "No action required; gpufleet does not configure nvidia-imex.",
)

NVLINK5 = warning(
    "GF145",
    "NVSwitch fabric requires nvlsm",
    "The NVSwitches of {gpu} are reached through ConnectX-7 bridges, which require the fabric "
    "manager, nvlsm, infiniband-diags and the modules mlx5_core and ib_umad.",
    "Install these yourself; gpufleet does not configure them.",
)
