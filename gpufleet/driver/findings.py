"""What the catalog says about a distribution, a GPU, a driver or a toolkit version."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

UNKNOWN_DISTRIBUTION = Kind(
    "GF101",
    Severity.BLOCKER,
    "Distribution not in the catalog",
    "the catalog has no distribution {distribution}. It knows {known}.",
    "gpufleet installs on these alone; `gpufleet catalog distributions` says what each can have.",
)

NO_ARCHITECTURE = Kind(
    "GF102",
    Severity.BLOCKER,
    "No driver repository for this architecture",
    "there is no NVIDIA repository for {title} on {architecture}; there is one for {known}.",
    "Leave the host out, or move it to a distribution that NVIDIA serves on {architecture}.",
)

DISTRIBUTION_OVER = Kind(
    "GF103",
    Severity.WARNING,
    "End of life of the distribution",
    "{title} has been at its end of life since {date}: no more fixes for its kernel or libraries.",
    "Plan the move to a newer release.",
)

DISTRIBUTION_DROPPED = Kind(
    "GF104",
    Severity.INFO,
    "NVIDIA does not support the distribution any more",
    "{title} is not in NVIDIA's newest list of supported distributions.",
    "Nothing to do now; new driver branches will not come to it.",
)

UNKNOWN_KEY = Kind(
    "GF105",
    Severity.BLOCKER,
    "Fingerprint of the repository's key not known",
    "the catalog does not know the fingerprint of {file}, the key of NVIDIA's repository for "
    "{title}, so a wrong key could not be told from the right one.",
    "Read the fingerprint from a source you trust and set driver_repo_key_fingerprint to it.",
)

NO_SUCH_BRANCH = Kind(
    "GF110",
    Severity.BLOCKER,
    "No such driver branch",
    "there is no driver branch {branch}; the catalog of {date} knows {known}.",
    "{remedy}",
)

NEWER_BRANCH = Kind(
    "GF111",
    Severity.WARNING,
    "Driver branch newer than the catalog",
    "driver branch {branch} is newer than the catalog of {date}, whose newest is {newest}; package "
    "names and limits are taken from that one.",
    "Try it on one host first, or update gpufleet.",
)

BRANCH_NOT_FOR_DISTRIBUTION = Kind(
    "GF112",
    Severity.BLOCKER,
    "Driver branch not available for the distribution",
    "driver branch {branch} cannot be installed on {title}. {limit}",
    "{remedy}",
)

VERSION_ABOVE_CEILING = Kind(
    "GF113",
    Severity.BLOCKER,
    "Driver version never built for the distribution",
    "driver {version} cannot be installed on {title}: the last version built for it is {ceiling}.",
    'Set driver_version = "{ceiling}" for this host, or leave it out.',
)

BRANCH_NOT_FOR_GPU = Kind(
    "GF114",
    Severity.BLOCKER,
    "Driver branch does not serve the GPU",
    "driver branch {branch} does not serve {gpu}. {limit}",
    "{remedy}",
)

NO_BRANCH = Kind(
    "GF115",
    Severity.BLOCKER,
    "No driver branch fits this host",
    "no driver branch fits this host: {reason}",
    "{remedy}",
)

MIXED_GPUS = Kind(
    "GF116",
    Severity.BLOCKER,
    "GPUs that no driver serves together",
    "no one driver serves all GPUs of this host: {gpus}.",
    "Move one sort of GPU to another host.",
)

MIXED_GENERATIONS = Kind(
    "GF117",
    Severity.INFO,
    "GPUs of several generations in one host",
    "this host has GPUs of several generations ({gpus}); the driver was chosen to serve all.",
    "Nothing to do.",
)

VERSION_AGAINST_BRANCH = Kind(
    "GF118",
    Severity.BLOCKER,
    "Driver version and branch contradict each other",
    "driver_version = {version} is not of branch {branch}, which driver_branch asks for.",
    "Remove one of the two settings, or make them agree.",
)

UNKNOWN_VERSION = Kind(
    "GF119",
    Severity.WARNING,
    "Driver version not in the catalog",
    "driver {version} is not known to the catalog of {date}; the newest of its branch that it "
    "knows is {newest}. Repositories move, so it may exist.",
    "Check that the repository has it: the installation stops when it has not.",
)

INSECURE = Kind(
    "GF120",
    Severity.WARNING,
    "Driver with known vulnerabilities",
    "driver {what} has known vulnerabilities ({source}). {fix}",
    "{remedy}",
)

BRANCH_OVER = Kind(
    "GF121",
    Severity.WARNING,
    "End of life of the driver branch",
    "driver branch {branch} is at its end of life ({date}): no more fixes.",
    "{remedy}",
)

BRANCH_PROBLEM = Kind(
    "GF122",
    Severity.WARNING,
    "Known problem of the driver branch",
    "driver branch {branch} has a known problem. {problem}",
    "Choose another branch unless you have tried this one on your GPUs.",
)

NO_OPEN_MODULES = Kind(
    "GF130",
    Severity.BLOCKER,
    "No open kernel modules here",
    "open kernel modules cannot be used: {reason}",
    'Set driver_modules = "proprietary" or "auto".',
)

NO_PROPRIETARY_MODULES = Kind(
    "GF131",
    Severity.BLOCKER,
    "No proprietary kernel modules here",
    "proprietary kernel modules cannot be used: {reason}",
    'Set driver_modules = "open" or "auto".',
)

NO_MODULES = Kind(
    "GF132",
    Severity.BLOCKER,
    "No kernel modules for this host",
    "branch {branch} has no kernel modules that this host can use: {reason}",
    "{remedy}",
)

UNKNOWN_GPU = Kind(
    "GF133",
    Severity.INFO,
    "GPU not in the catalog",
    "the GPU with PCI id 10de:{device:04x} is not known to the catalog of {date}; it is taken for "
    "a newer one, and {modules} modules are used.",
    "If the driver does not find the GPU, set driver_branch or driver_modules, or update gpufleet.",
)

NO_DISTRO_DRIVER = Kind(
    "GF140",
    Severity.BLOCKER,
    "No driver in the distribution's own archive",
    'driver_source = "distro", but the catalog knows no NVIDIA driver in the archive of {title}.',
    'Set driver_source = "nvidia".',
)

BRANCH_NOT_IN_ARCHIVE = Kind(
    "GF141",
    Severity.BLOCKER,
    "Driver branch not in the distribution's archive",
    "the archive of {title} has no driver branch {branch}; it has {known}.",
    "{remedy}",
)

NO_PRECOMPILED = Kind(
    "GF142",
    Severity.BLOCKER,
    "No precompiled kernel modules",
    "there are no precompiled {modules}modules of branch {branch} for {title} from {source}.",
    'Set driver_build = "dkms".',
)

NO_FABRIC_MANAGER = Kind(
    "GF143",
    Severity.BLOCKER,
    "No fabric manager for a host with NVSwitch",
    "this host has an NVSwitch, and {title}'s own archive has no fabric manager: CUDA would stop "
    "with error 802.",
    'Set driver_source = "nvidia".',
)

FABRIC_OFF_HOST = Kind(
    "GF144",
    Severity.INFO,
    "NVSwitch fabric managed outside the host",
    "the NVSwitches of {gpu} are managed outside the host; no fabric manager is installed.",
    "Nothing to do; nvidia-imex is not set up by gpufleet.",
)

NVLINK5 = Kind(
    "GF145",
    Severity.WARNING,
    "NVSwitch fabric that needs nvlsm",
    "the NVSwitches of {gpu} are reached through ConnectX-7 bridges: such a host needs the fabric "
    "manager, nvlsm, infiniband-diags and the modules mlx5_core and ib_umad.",
    "Install these yourself; gpufleet does not set them up.",
)

TOOLKIT_REFUSED = Kind(
    "GF160",
    Severity.BLOCKER,
    "Container toolkit version not for the distribution",
    "container toolkit {version} cannot be installed on {title}: {reason}.",
    'Set toolkit_version = "{newest}", or leave it out.',
)

TOOLKIT_INSECURE = Kind(
    "GF161",
    Severity.WARNING,
    "Container toolkit with known vulnerabilities",
    "container toolkit {version} has known vulnerabilities: {cves}.",
    "Use {fixed} or newer.",
)

TOOLKIT_UNKNOWN_VERSION = Kind(
    "GF162",
    Severity.WARNING,
    "Container toolkit version not in the catalog",
    "container toolkit {version} is not known to the catalog of {date}, whose newest is {newest}.",
    "Check that the repository has it: the installation stops when it has not.",
)

TOOLKIT_UNTESTED = Kind(
    "GF163",
    Severity.INFO,
    "Container toolkit not tested by NVIDIA here",
    "{title} is not among the platforms that NVIDIA tests the container toolkit on; its packages "
    "install there.",
    "Nothing to do.",
)

TOOLKIT_TOO_OLD = Kind(
    "GF164",
    Severity.BLOCKER,
    "Container toolkit older than its repository",
    "container toolkit {version} is not in the repository, which begins with {oldest}.",
    'Set toolkit_version = "{newest}", or leave it out.',
)

TOOLKIT_ARCHITECTURE = Kind(
    "GF165",
    Severity.BLOCKER,
    "No container toolkit for this architecture",
    "there is no container toolkit for {architecture}; there is one for {known}.",
    "Set toolkit_enabled = False for this host.",
)

MODULES_STAY = Kind(
    "GF565",
    Severity.BLOCKER,
    "The modules cannot be unloaded",
    "the nvidia modules are in use, so the driver was left as it is; nothing was removed.",
    "Stop what uses the GPUs (fuser -v /dev/nvidia*), or set driver_allow_disruption = True: the "
    "modules then stay loaded until the next boot.",
)

INITRAMFS_KEEPS = Kind(
    "GF568",
    Severity.BLOCKER,
    "The initramfs still holds the blacklist",
    "the initramfs of the running kernel could not be rebuilt without {file}.",
    "Rebuild it by hand (update-initramfs -u, dracut --force), or run remove again.",
)
