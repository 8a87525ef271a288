"""Which driver a host can have: its distribution, branch, version, modules and packages."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

UNKNOWN_DISTRIBUTION = blocker(
    "GF101",
    "Unsupported distribution",
    "Distribution {distribution} is not in the catalog. Supported: {known}.",
    "Run `gpufleet catalog distributions` to see what each one supports.",
)

NO_ARCHITECTURE = blocker(
    "GF102",
    "No driver repository for this architecture",
    "NVIDIA has no repository for {title} on {architecture}; available: {known}.",
    "Remove the host from the inventory, or move it to a distribution that NVIDIA supports on "
    "{architecture}.",
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

UNKNOWN_KEY = blocker(
    "GF105",
    "Unknown fingerprint of the repository key",
    "The catalog has no fingerprint for {file}, the key of NVIDIA's repository for {title}, so "
    "the key cannot be verified.",
    "Get the fingerprint from a source you trust and set driver_repo_key_fingerprint to it.",
)

NO_SUCH_BRANCH = blocker(
    "GF110",
    "Unknown driver branch",
    "Driver branch {branch} does not exist; the catalog of {date} has {known}.",
    "{remedy}",
    advice="Set driver_branch to one of the listed branches that supports the distribution and "
    "the GPU; the finding names one.",
)

NEWER_BRANCH = warning(
    "GF111",
    "Driver branch newer than the catalog",
    "Driver branch {branch} is newer than the newest in the catalog of {date}, {newest}, whose "
    "package names and limits are used.",
    "Try it on one host first, or update gpufleet.",
)

BRANCH_NOT_FOR_DISTRIBUTION = blocker(
    "GF112",
    "Driver branch not available for the distribution",
    "Driver branch {branch} cannot be installed on {title}. {limit}",
    "{remedy}",
    advice="Set driver_branch to the newest branch that is available for the distribution, or "
    "move the host to a newer distribution; the finding names the branch.",
)

VERSION_ABOVE_CEILING = blocker(
    "GF113",
    "Driver version not built for the distribution",
    "Driver {version} cannot be installed on {title}: the last version built for it is {ceiling}.",
    'Set driver_version = "{ceiling}" for this host, or remove it.',
)

BRANCH_NOT_FOR_GPU = blocker(
    "GF114",
    "Driver branch does not support the GPU",
    "Driver branch {branch} does not support {gpu}. {limit}",
    "{remedy}",
    advice="Set driver_branch to a branch that supports the GPU; the finding names one.",
)

NO_BRANCH = blocker(
    "GF115",
    "No driver branch for this host",
    "No driver branch supports this host: {reason}",
    "{remedy}",
    advice="Change the distribution or the GPU, or the setting that the message names.",
)

MIXED_GPUS = blocker(
    "GF116",
    "No driver supports all GPUs",
    "No single driver supports all GPUs of this host: {gpus}.",
    "Move one kind of GPU to another host.",
)

MIXED_GENERATIONS = info(
    "GF117",
    "GPUs of several generations",
    "This host has GPUs of several generations ({gpus}); a driver that supports all of them was "
    "selected.",
    "No action required.",
)

VERSION_AGAINST_BRANCH = blocker(
    "GF118",
    "Driver version and branch conflict",
    "driver_version = {version} does not belong to driver_branch = {branch}.",
    "Remove one of the two settings, or make them agree.",
)

UNKNOWN_VERSION = warning(
    "GF119",
    "Driver version not in the catalog",
    "Driver {version} is not in the catalog of {date}, whose newest version of that branch is "
    "{newest}. Repositories change, so it may exist.",
    "Check that the repository has it; otherwise the installation stops.",
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

NO_OPEN_MODULES = blocker(
    "GF130",
    "Open kernel modules not available",
    "Open kernel modules cannot be used: {reason}",
    'Set driver_modules = "proprietary" or "auto".',
)

NO_PROPRIETARY_MODULES = blocker(
    "GF131",
    "Proprietary kernel modules not available",
    "Proprietary kernel modules cannot be used: {reason}",
    'Set driver_modules = "open" or "auto".',
)

NO_MODULES = blocker(
    "GF132",
    "No kernel modules for this host",
    "Driver branch {branch} has no kernel modules for this host: {reason}",
    "{remedy}",
    advice="Set driver_branch to a branch whose modules support the GPU; the finding names one.",
)

UNKNOWN_GPU = info(
    "GF133",
    "GPU not in the catalog",
    "The GPU with PCI ID 10de:{device:04x} is not in the catalog of {date}; gpufleet assumes a "
    "newer GPU and uses {modules} modules.",
    "If the driver does not detect the GPU, set driver_branch or driver_modules, or update "
    "gpufleet.",
)

NO_DISTRO_DRIVER = blocker(
    "GF140",
    "No driver in the distribution's archive",
    'driver_source = "distro", but the catalog has no NVIDIA driver in the archive of {title}.',
    'Set driver_source = "nvidia".',
)

BRANCH_NOT_IN_ARCHIVE = blocker(
    "GF141",
    "Driver branch not in the distribution's archive",
    "The archive of {title} has no driver branch {branch}; it has {known}.",
    "{remedy}",
    advice='Set driver_branch to one of the listed branches, or driver_source = "nvidia".',
)

NO_PRECOMPILED = blocker(
    "GF142",
    "No precompiled kernel modules",
    "There are no precompiled {modules}modules of branch {branch} for {title} from {source}.",
    'Set driver_build = "dkms".',
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
