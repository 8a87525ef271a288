"""Findings about the container toolkit, container runtimes and CDI."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

CONFIG_INVALID = Kind(
    "GF401",
    Severity.BLOCKER,
    "Runtime configuration does not parse",
    "{file} is not valid {language}: {reason}. It is left as it is.",
    "Repair the file by hand ({runtime} would not start with it either), then run again.",
)
CONFIG_UNREADABLE = Kind(
    "GF402",
    Severity.BLOCKER,
    "Runtime configuration cannot be read",
    "{file} cannot be read: {reason}.",
    "Make it a regular text file that root can read, or point gpufleet at the right file.",
)
DUPLICATE_KEYS = Kind(
    "GF403",
    Severity.WARNING,
    "A key stands twice in one object",
    "{file} has these keys more than once in one object: {keys}. dockerd takes the last one.",
    "Remove the ones that do not count.",
)
FLAG_CONFLICT = Kind(
    "GF404",
    Severity.BLOCKER,
    "Option both in the unit and in daemon.json",
    "{unit} starts dockerd with {flags}, and {file} has, or would get, the same options: dockerd "
    "refuses to start with an option in both places.",
    "Keep each option in one place: take it out of the unit's ExecStart or out of {file}.",
)
RUNTIME_KEPT = Kind(
    "GF405",
    Severity.WARNING,
    "Another nvidia runtime is kept",
    "{file} already has a runtime {name} that differs from gpufleet's: {difference}. "
    "It is kept as it is.",
    "Remove the entry to have gpufleet write its own, or leave it if it is meant so.",
)
RUNTIME_ADOPTED = Kind(
    "GF406",
    Severity.INFO,
    "The nvidia runtime was there already",
    "{file} already has the runtime {name} as gpufleet would write it. Nothing was added, and "
    "removing gpufleet will leave it.",
    "Nothing to do.",
)
DEFAULT_REPLACED = Kind(
    "GF407",
    Severity.WARNING,
    "The default runtime was another one",
    "The default runtime in {file} is {old}; toolkit_default_runtime makes it {name}.",
    "Nothing to do if that is wanted: the old value is recorded, and removal puts it back.",
)
CDI_SWITCHED_OFF = Kind(
    "GF408",
    Severity.WARNING,
    "CDI is switched off in the runtime's configuration",
    "{file} switches CDI off. This is kept, so `{name}` devices cannot be asked for by CDI name.",
    "Remove the setting to let gpufleet switch CDI on, or set toolkit_cdi = False.",
)
CRI_DISABLED = Kind(
    "GF409",
    Severity.INFO,
    "containerd's CRI plugin is disabled",
    "{file} disables the CRI plugin, as docker's containerd.io package ships it. No kubelet can "
    "use this containerd; docker does not need the runtime here. Nothing is changed.",
    "For a Kubernetes node, write a full configuration first (`containerd config default`).",
)
CLUSTER_OWNS_CONFIG = Kind(
    "GF410",
    Severity.INFO,
    "k3s and RKE2 configure containerd themselves",
    "{unit} generates {file} at each start and adds the runtime nvidia by itself when "
    "{binary} is installed. Nothing is written there.",
    "Nothing to do; a RuntimeClass named nvidia selects it.",
)
CLUSTER_DEFAULT_RUNTIME = Kind(
    "GF411",
    Severity.WARNING,
    "The default runtime of k3s and RKE2 is set in their own configuration",
    "toolkit_default_runtime is set, but {unit} generates {file} at each start.",
    "Add `default-runtime: nvidia` to {config} and restart {unit}.",
)
EDIT_REFUSED = Kind(
    "GF412",
    Severity.BLOCKER,
    "A configuration cannot be changed safely",
    "{file} is left as it is: {reason}.",
    "Rewrite the part in plain tables (no inline tables, no dotted keys), then run again.",
)
RESTART_STOPS_CONTAINERS = Kind(
    "GF413",
    Severity.WARNING,
    "A restart would stop running containers",
    "{unit} must be restarted ({reason}), but {containers} containers run, and live-restore is "
    "off: the restart would stop them. It is left out.",
    "Drain the host and run again, or set toolkit_allow_disruption = True.",
)
RESTART_NEEDED = Kind(
    "GF414",
    Severity.WARNING,
    "A runtime must be restarted",
    "{unit} must be restarted ({reason}), and toolkit_restart is off.",
    "Restart it when it suits: systemctl restart {unit}",
)
CDI_UNSUPPORTED = Kind(
    "GF415",
    Severity.INFO,
    "The runtime does not know CDI",
    "{runtime} {version} has no CDI support; it starts with {since}.",
    "Use the runtime nvidia instead, or a newer {runtime}.",
)
CDI_DUPLICATE = Kind(
    "GF416",
    Severity.WARNING,
    "Two CDI specs name the same devices",
    "Both {ours} and {other} describe nvidia.com/gpu; the stale one of them may win.",
    "Remove {other}, unless another tool keeps it up to date.",
)
LEGACY_PACKAGES = Kind(
    "GF418",
    Severity.WARNING,
    "Packages of nvidia-docker2 are installed",
    "{packages} belong to the time before the container toolkit. They end with 1.14, and "
    "/etc/docker/daemon.json is a configuration file of nvidia-docker2: purging that package "
    "takes the file away.",
    "Save /etc/docker/daemon.json, remove (do not purge) {packages}, and run again.",
)
RUNTIME_MISSING = Kind(
    "GF419",
    Severity.WARNING,
    "A runtime that was asked for is not installed",
    "toolkit_runtimes names {runtime}, which is not installed.",
    "Install {runtime} first, or leave it out of toolkit_runtimes.",
)
NO_RUNTIME = Kind(
    "GF420",
    Severity.INFO,
    "No container runtime",
    "Neither docker nor containerd nor CRI-O is installed: only the toolkit's packages are.",
    "Run again after a runtime was installed.",
)
RUNTIME_NOT_MANAGED = Kind(
    "GF421",
    Severity.INFO,
    "A runtime is there, but not managed",
    "{runtime} is installed, and toolkit_runtimes leaves it out.",
    "Add it to toolkit_runtimes if its containers should get GPUs.",
)
CGROUP_MISMATCH = Kind(
    "GF422",
    Severity.WARNING,
    "The nvidia runtime uses another cgroup driver",
    "In {file} the runtime {name} has SystemdCgroup = {ours}, and {base} has {theirs}: pods that "
    "use it may be killed again and again.",
    "Give both the same value.",
)
LEFT_CHANGED = Kind(
    "GF423",
    Severity.WARNING,
    "A setting was changed by hand",
    "{setting} in {file} was written by gpufleet and changed since. It is left as it is.",
    "Remove it by hand if it should go.",
)
NEWER_INSTALLED = Kind(
    "GF424",
    Severity.INFO,
    "A newer toolkit is installed",
    "Version {installed} of the container toolkit is installed, newer than {version}, which "
    "would be chosen. It is kept: a downgrade happens only when asked for by version.",
    'Set toolkit_version = "{version}" to go back.',
)
BASE_UNKNOWN = Kind(
    "GF425",
    Severity.WARNING,
    "The runtime's own configuration is not known",
    "{runtime} did not tell its effective configuration, so the runtime {name} in {file} "
    "inherits nothing (monitor_path, allowed annotations).",
    "Start {runtime} and run again.",
)
NOT_EFFECTIVE = Kind(
    "GF426",
    Severity.BLOCKER,
    "Another file decides instead",
    "{other} is imported by {file} and replaces all that {file} says of the CRI plugin: a change "
    "of {file} would have no effect. containerd merges such files only from {since} on.",
    "Move the settings of {other} into {file}, or remove {other}, then run again.",
)
OLD_CONFIG_VERSION = Kind(
    "GF427",
    Severity.BLOCKER,
    "containerd reads only a part of this configuration",
    "{file} has configuration version 1, and containerd {version} drops the runtimes of such a "
    "file.",
    "Convert it: containerd --config {file} config migrate; check the output and put it in place.",
)

CONFIG_MOVED = Kind(
    "GF430",
    Severity.BLOCKER,
    "A configuration changed during the run",
    "{file} is not what it was when this run began, so it was left as it is.",
    "Somebody else edits it: run again when they are done.",
)

PARSER_REFUSES = Kind(
    "GF431",
    Severity.BLOCKER,
    "The runtime refuses the new configuration",
    "{runtime}'s own parser does not accept the new {file}; the old one is in place.",
    "What it said follows. The file that was there may hold what this version does not know.",
)

RUNTIME_DOWN = Kind(
    "GF432",
    Severity.BLOCKER,
    "A runtime did not come up",
    "{unit} does not work with the new {file} as it did before; the old file was put back.",
    "What is missing and what its log says follows; with that put right, run again.",
)

NOT_TAKEN_UP = Kind(
    "GF436",
    Severity.BLOCKER,
    "The runtime ignores its configuration",
    "{runtime} reads the new {file}, and the runtime nvidia is not in the configuration that it "
    "prints; the old file is in place.",
    "See what replaces it: an imported file, or a `version` that the program does not know.",
)

NEEDED_BY_OTHERS = Kind(
    "GF434",
    Severity.WARNING,
    "A setting of gpufleet's is needed by others",
    "{setting} in {file} was written by gpufleet and stays: {user}, which gpufleet did not write, "
    "would not work without it.",
    "Nothing to do; it goes by hand together with {user}.",
)

RUNTIME_STILL_NAMED = Kind(
    "GF435",
    Severity.BLOCKER,
    "A configuration would name a runtime that is gone",
    "{setting} of {runtime} names the runtime {name}, and {name} goes when {file} loses what "
    "gpufleet wrote: {runtime} would not work any more. {file} is left as it is.",
    "Let {setting} name another runtime, or remove that line, then run again.",
)

MARK_DROPPED = Kind(
    "GF437",
    Severity.WARNING,
    "A byte order mark is dropped",
    "{file} begins with a byte order mark, and this version of dockerd does not start with one: "
    "the file is written without it.",
    "Nothing to do; save the file as UTF-8 without a mark.",
)

BLANK_REPLACED = Kind(
    "GF438",
    Severity.INFO,
    "An empty configuration becomes an empty object",
    "Without gpufleet's settings {file} would be empty, and this version of dockerd does not start "
    "with an empty file: it holds {{}} now, which means the same.",
    "Nothing to do.",
)

RUNTIME_FAILED = Kind(
    "GF439",
    Severity.WARNING,
    "A runtime does not run",
    "{unit} has failed. Its configuration is looked after, and nothing has tried it.",
    "See `systemctl status {unit}`, start it, and run again.",
)

CDI_FAILED = Kind(
    "GF433",
    Severity.BLOCKER,
    "The CDI spec could not be made",
    "{file} could not be written for driver {driver}.",
    "See that /dev/nvidia0 is there and nvidia-smi works, then run again.",
)

CONTAINERS_BEGAN = Kind(
    "GF440",
    Severity.BLOCKER,
    "Containers were started during the run",
    "after the host was examined, containers were started that a restart of {unit} would stop; "
    "{unit} was not restarted, and its configuration is as before. They follow.",
    "Run gpu_node again: it leaves the restart to you then. Or set toolkit_allow_disruption = True "
    "if the containers may be stopped.",
)

CONTAINERS_RUN = Kind(
    "GF564",
    Severity.BLOCKER,
    "Containers run under a runtime that would lose nvidia",
    "{containers} containers of {runtime} run. Those that use the runtime nvidia could be neither "
    "stopped nor entered once its program is gone; nothing was removed.",
    "Stop the containers (drain the node), or set toolkit_allow_disruption = True.",
)
