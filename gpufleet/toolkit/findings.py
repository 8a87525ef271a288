"""Findings about the container toolkit, container runtimes and CDI."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

CONFIG_INVALID = Kind(
    "GF401",
    Severity.BLOCKER,
    "Invalid runtime configuration",
    "{file} is not valid {language}: {reason}. It was not changed.",
    "Repair the file ({runtime} would not start with it either), then run again.",
)
CONFIG_UNREADABLE = Kind(
    "GF402",
    Severity.BLOCKER,
    "Runtime configuration cannot be read",
    "Cannot read {file}: {reason}.",
    "Make it a regular text file that root can read, or point gpufleet to the right file.",
)
DUPLICATE_KEYS = Kind(
    "GF403",
    Severity.WARNING,
    "Duplicate keys in one object",
    "{file} has duplicate keys in one object: {keys}. dockerd uses the last one.",
    "Remove the duplicates.",
)
FLAG_CONFLICT = Kind(
    "GF404",
    Severity.BLOCKER,
    "Option set in both the unit and daemon.json",
    "{unit} starts dockerd with {flags}, and {file} has, or would get, the same options. dockerd "
    "does not start with an option in both places.",
    "Set each option in one place: remove it from the unit's ExecStart or from {file}.",
)
RUNTIME_KEPT = Kind(
    "GF405",
    Severity.WARNING,
    "Existing nvidia runtime kept",
    "{file} already has a runtime {name} that differs from gpufleet's: {difference}. It was not "
    "changed.",
    "Remove the entry to let gpufleet write its own, or leave it if the difference is intended.",
)
RUNTIME_ADOPTED = Kind(
    "GF406",
    Severity.INFO,
    "nvidia runtime already configured",
    "{file} already has the runtime {name} exactly as gpufleet would write it. Nothing was added, "
    "and removal will leave it in place.",
    "No action required.",
)
DEFAULT_REPLACED = Kind(
    "GF407",
    Severity.WARNING,
    "Default runtime replaced",
    "The default runtime in {file} was {old}; toolkit_default_runtime sets it to {name}.",
    "No action required if intended: removal restores the recorded value.",
)
CDI_SWITCHED_OFF = Kind(
    "GF408",
    Severity.WARNING,
    "CDI disabled in the runtime's configuration",
    "{file} disables CDI. The setting is kept, so `{name}` devices cannot be requested by CDI "
    "name.",
    "Remove the setting to let gpufleet enable CDI, or set toolkit_cdi = False.",
)
CRI_DISABLED = Kind(
    "GF409",
    Severity.INFO,
    "containerd's CRI plugin is disabled",
    "{file} disables the CRI plugin, as in docker's containerd.io package. No kubelet can use "
    "this containerd, and docker does not need the runtime here. Nothing was changed.",
    "For a Kubernetes node, write a full configuration first (`containerd config default`).",
)
CLUSTER_OWNS_CONFIG = Kind(
    "GF410",
    Severity.INFO,
    "k3s and RKE2 configure containerd themselves",
    "{unit} generates {file} at each start and adds the nvidia runtime when {binary} is "
    "installed. gpufleet does not write to it.",
    "No action required; use a RuntimeClass named nvidia.",
)
CLUSTER_DEFAULT_RUNTIME = Kind(
    "GF411",
    Severity.WARNING,
    "Default runtime of k3s and RKE2 is set in their own configuration",
    "toolkit_default_runtime is set, but {unit} generates {file} at each start.",
    "Add `default-runtime: nvidia` to {config} and restart {unit}.",
)
EDIT_REFUSED = Kind(
    "GF412",
    Severity.BLOCKER,
    "Configuration cannot be edited safely",
    "{file} was not changed: {reason}.",
    "Rewrite that part with plain tables (no inline tables, no dotted keys), then run again.",
)
RESTART_STOPS_CONTAINERS = Kind(
    "GF413",
    Severity.WARNING,
    "Restart would stop running containers",
    "{unit} requires a restart ({reason}), but {containers} containers are running and "
    "live-restore is disabled: a restart would stop them. It was skipped.",
    "Drain the host and run again, or set toolkit_allow_disruption = True.",
)
RESTART_NEEDED = Kind(
    "GF414",
    Severity.WARNING,
    "Runtime requires a restart",
    "{unit} requires a restart ({reason}), and toolkit_restart is off.",
    "Restart it when convenient: systemctl restart {unit}",
)
CDI_UNSUPPORTED = Kind(
    "GF415",
    Severity.INFO,
    "Runtime does not support CDI",
    "{runtime} {version} does not support CDI; it was added in {since}.",
    "Use the nvidia runtime, or a newer {runtime}.",
)
CDI_DUPLICATE = Kind(
    "GF416",
    Severity.WARNING,
    "Two CDI specs define the same devices",
    "Both {ours} and {other} define nvidia.com/gpu; the stale one may take effect.",
    "Remove {other}, unless another tool updates it.",
)
LEGACY_PACKAGES = Kind(
    "GF418",
    Severity.WARNING,
    "nvidia-docker2 packages are installed",
    "{packages} predate the container toolkit. Their last version is 1.14, and "
    "/etc/docker/daemon.json is a configuration file of nvidia-docker2: purging that package "
    "deletes it.",
    "Back up /etc/docker/daemon.json, remove (do not purge) {packages}, and run again.",
)
RUNTIME_MISSING = Kind(
    "GF419",
    Severity.WARNING,
    "Requested runtime is not installed",
    "toolkit_runtimes lists {runtime}, which is not installed.",
    "Install {runtime} first, or remove it from toolkit_runtimes.",
)
NO_RUNTIME = Kind(
    "GF420",
    Severity.INFO,
    "No container runtime",
    "Neither docker nor containerd nor CRI-O is installed; only the toolkit packages are.",
    "Run again after installing a runtime.",
)
RUNTIME_NOT_MANAGED = Kind(
    "GF421",
    Severity.INFO,
    "Runtime not managed",
    "{runtime} is installed but not listed in toolkit_runtimes.",
    "Add it to toolkit_runtimes if its containers need GPUs.",
)
CGROUP_MISMATCH = Kind(
    "GF422",
    Severity.WARNING,
    "nvidia runtime uses another cgroup driver",
    "In {file}, runtime {name} has SystemdCgroup = {ours} and {base} has {theirs}: pods that use "
    "it may be killed repeatedly.",
    "Set both to the same value.",
)
LEFT_CHANGED = Kind(
    "GF423",
    Severity.WARNING,
    "Modified setting left in place",
    "{setting} in {file} was written by gpufleet and modified since; it is left in place.",
    "Remove it manually if you do not need it.",
)
NEWER_INSTALLED = Kind(
    "GF424",
    Severity.INFO,
    "Newer toolkit installed",
    "Container toolkit {installed} is installed, newer than the selected {version}. It is kept: a "
    "downgrade requires an exact version.",
    'Set toolkit_version = "{version}" to downgrade.',
)
BASE_UNKNOWN = Kind(
    "GF425",
    Severity.WARNING,
    "Runtime's effective configuration unknown",
    "{runtime} did not report its effective configuration, so runtime {name} in {file} inherits "
    "nothing (monitor_path, allowed annotations).",
    "Start {runtime} and run again.",
)
NOT_EFFECTIVE = Kind(
    "GF426",
    Severity.BLOCKER,
    "Configuration overridden by another file",
    "{other}, imported by {file}, replaces everything {file} sets for the CRI plugin: a change of "
    "{file} would have no effect. containerd merges such files only since {since}.",
    "Move the settings of {other} into {file}, or remove {other}, then run again.",
)
OLD_CONFIG_VERSION = Kind(
    "GF427",
    Severity.BLOCKER,
    "Outdated containerd configuration version",
    "{file} has configuration version 1; containerd {version} ignores the runtimes in such a file.",
    "Convert it: containerd --config {file} config migrate; check the output and replace the file "
    "with it.",
)

CONFIG_MOVED = Kind(
    "GF430",
    Severity.BLOCKER,
    "Configuration changed during the run",
    "{file} changed since this run read it, so it was not written.",
    "Another program or person is editing it: run again when they are done.",
)

PARSER_REFUSES = Kind(
    "GF431",
    Severity.BLOCKER,
    "Runtime rejected the new configuration",
    "{runtime}'s own parser rejects the new {file}; the previous file is in place.",
    "The parser's output follows. The file may contain options that this version does not support.",
)

RUNTIME_DOWN = Kind(
    "GF432",
    Severity.BLOCKER,
    "Runtime did not come up",
    "{unit} does not work with the new {file} as before; the previous file was restored.",
    "What is missing and the end of its log follow. Fix the cause, then run again.",
)

NOT_TAKEN_UP = Kind(
    "GF436",
    Severity.BLOCKER,
    "Runtime ignores its configuration",
    "{runtime} accepts the new {file}, but the nvidia runtime is missing from its effective "
    "configuration; the previous file is in place.",
    "Find what overrides it: an imported file, or an unsupported `version`.",
)

NEEDED_BY_OTHERS = Kind(
    "GF434",
    Severity.WARNING,
    "Setting is required by others",
    "{setting} in {file} was written by gpufleet and stays: {user}, which gpufleet did not write, "
    "depends on it.",
    "No action required; remove it together with {user}.",
)

RUNTIME_STILL_NAMED = Kind(
    "GF435",
    Severity.BLOCKER,
    "Configuration would refer to a removed runtime",
    "{setting} of {runtime} refers to runtime {name}, which would be removed from {file}: "
    "{runtime} would stop working. {file} was not changed.",
    "Set {setting} to another runtime, or remove that line, then run again.",
)

MARK_DROPPED = Kind(
    "GF437",
    Severity.WARNING,
    "Byte order mark removed",
    "{file} starts with a byte order mark, which this version of dockerd rejects; the file is "
    "written without it.",
    "No action required; save the file as UTF-8 without a byte order mark.",
)

BLANK_REPLACED = Kind(
    "GF438",
    Severity.INFO,
    "Empty configuration replaced with an empty object",
    "Without gpufleet's settings, {file} would be empty, and this version of dockerd does not "
    "start with an empty file. It now contains the equivalent {{}}.",
    "No action required.",
)

RUNTIME_FAILED = Kind(
    "GF439",
    Severity.WARNING,
    "Runtime has failed",
    "{unit} has failed. Its configuration was written but could not be tested.",
    "See `systemctl status {unit}`, start it, and run again.",
)

CDI_FAILED = Kind(
    "GF433",
    Severity.BLOCKER,
    "CDI spec could not be generated",
    "Cannot generate {file} for driver {driver}.",
    "Check that /dev/nvidia0 exists and nvidia-smi works, then run again.",
)

CONTAINERS_BEGAN = Kind(
    "GF440",
    Severity.BLOCKER,
    "Containers started during the run",
    "Containers that a restart of {unit} would stop were started after the host was examined. "
    "{unit} was not restarted and its previous configuration is in place. The containers are "
    "listed below.",
    "Run again: it then leaves the restart to you. Or set toolkit_allow_disruption = "
    "True to let the containers be stopped.",
)

CONTAINERS_RUN = Kind(
    "GF564",
    Severity.BLOCKER,
    "Running containers would lose the nvidia runtime",
    "{containers} {runtime} containers are running; removing nvidia-container-runtime would leave "
    "those that use it impossible to stop or exec into. Nothing was removed.",
    "Stop the containers (drain the node), or set toolkit_allow_disruption = True.",
)
