"""Which container toolkit a host can have, and its packages."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

TOOLKIT_REFUSED = blocker(
    "GF160",
    "Container toolkit version not available",
    "Container toolkit {version} cannot be installed on {title}: {reason}.",
    'Set toolkit_version = "{newest}", or remove it.',
)

TOOLKIT_INSECURE = warning(
    "GF161",
    "Container toolkit with known vulnerabilities",
    "Container toolkit {version} has known vulnerabilities: {cves}.",
    "Use {fixed} or newer.",
)

TOOLKIT_UNKNOWN_VERSION = warning(
    "GF162",
    "Container toolkit version not in the catalog",
    "Container toolkit {version} is not in the catalog of {date}, whose newest is {newest}.",
    "Check that the repository has it; otherwise the installation stops.",
)

TOOLKIT_UNTESTED = info(
    "GF163",
    "Container toolkit not tested by NVIDIA on this distribution",
    "{title} is not a platform on which NVIDIA tests the container toolkit; its packages install "
    "there.",
    "No action required.",
)

TOOLKIT_ARCHITECTURE = blocker(
    "GF165",
    "No container toolkit for this architecture",
    "There is no container toolkit for {architecture}; available: {known}.",
    "Set toolkit_enabled = False for this host.",
)

LEGACY_PACKAGES = warning(
    "GF418",
    "nvidia-docker2 packages are installed",
    "{packages} predate the container toolkit. Their last version is 1.14, and "
    "/etc/docker/daemon.json is a configuration file of nvidia-docker2: purging that package "
    "deletes it.",
    "Back up /etc/docker/daemon.json, remove (do not purge) {packages}, and run again.",
)

TOOLKIT_KEPT = warning(
    "GF424",
    "Installed container toolkit is kept",
    "Container toolkit {installed} is installed; {who} {version}. A plain run does not change an "
    "installed toolkit to another version.",
    "To change it host by host: `gpufleet upgrade INVENTORY{options}`. To change it in "
    "this run, on all hosts at once: `gpufleet apply INVENTORY --allow-toolkit-change` "
    '(toolkit_allow_change = True). To stay, set toolkit_version = "{installed}".',
)
