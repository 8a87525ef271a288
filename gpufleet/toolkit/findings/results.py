"""Findings about the result of all configuration files of a runtime together."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

NOT_EFFECTIVE = blocker(
    "GF426",
    "Configuration overridden by another file",
    "{other}, imported by {file}, replaces everything {file} sets for the CRI plugin: a change of "
    "{file} would have no effect. containerd merges such files only since {since}.",
    "Move the settings of {other} into {file}, or remove {other}, then run again.",
)

RUNTIME_STILL_NAMED = blocker(
    "GF435",
    "Configuration would refer to a removed runtime",
    "{setting} of {runtime} refers to runtime {name}, which would be removed from {file}: "
    "{runtime} would stop working. {file} was not changed.",
    "Set {setting} to another runtime, or remove that line, then run again.",
)

RUNTIME_UNDEFINED = warning(
    "GF441",
    "Default runtime is not defined",
    "{setting} of {runtime} is {name}, and none of its configuration files defines a runtime "
    "{name}: {effect}. gpufleet leaves it as it is.",
    "Add {example} to {file}, or set {setting} to a runtime that is defined, then restart "
    "{runtime}.",
)

RUNTIME_TO_DEFINE = warning(
    "GF449",
    "Default runtime is not defined yet",
    "{setting} of {runtime} is {name}, and none of its configuration files defines a runtime "
    "{name}: {effect}.",
    "`gpufleet apply` adds it to {file}. If {unit} has failed, start it after that.",
)

LOW_LEVEL_RUNTIME = warning(
    "GF444",
    "Low-level runtime is not in PATH",
    "nvidia-container-runtime calls runc or crun. Neither is in PATH, {runtime} has its own at "
    "{program}: containers of the runtime nvidia do not start.",
    "After this run: nvidia-ctk config --config-file={config} --in-place --set "
    "nvidia-container-runtime.runtimes={program}",
)

DEFAULT_REPLACED = warning(
    "GF407",
    "Default runtime replaced",
    "The default runtime in {file} was {old}; toolkit_default_runtime sets it to {name}.",
    "No action required if intended: removal restores the recorded value.",
)

DEFAULT_OVERRIDDEN = warning(
    "GF442",
    "Another setting of the default runtime wins",
    "toolkit_default_runtime is set, but {file} sets {setting} of {runtime} to {value}, and that "
    "setting wins.",
    "Remove {setting} from {file}, or set toolkit_default_runtime = False.",
)

CDI_OFF = warning(
    "GF408",
    "CDI is off in the runtime's configuration",
    "CDI is off in {runtime}: {file} {does}. The nvidia runtime works without CDI; "
    "`nvidia.com/gpu` devices cannot be requested by CDI name.",
    "{change}, or set toolkit_cdi = False.",
    advice="Remove the setting that disables CDI, or enable CDI in that file, or set "
    "toolkit_cdi = False.",
)
