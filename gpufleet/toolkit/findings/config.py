"""Settings in the runtimes' configuration files."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

CONFIG_INVALID = blocker(
    "GF401",
    "Invalid runtime configuration",
    "{file} cannot be used: {reason}. It was not changed.",
    "Repair the file, a regular one with UTF-8 text, then run again. If containerd uses another "
    "main file, set toolkit_containerd_config.",
)

DUPLICATE_KEYS = warning(
    "GF403",
    "Duplicate keys in one object",
    "{file} has duplicate keys in one object: {keys}. dockerd joins "
    "those that are objects, and of the others uses the last one.",
    "Remove the duplicates.",
)

RUNTIME_KEPT = warning(
    "GF405",
    "Existing nvidia runtime kept",
    "{file} already has a runtime {name} that differs from gpufleet's: {difference}. It was not "
    "changed.",
    "Remove the entry from {file} to let gpufleet write its own, or leave it if the difference is "
    "intended.",
)

RUNTIME_ADOPTED = info(
    "GF406",
    "nvidia runtime already configured",
    "{file} already has the runtime {name} exactly as gpufleet would write it. The entry was "
    "not changed, and removal will leave it in place.",
    "No action required.",
)

EDIT_REFUSED = blocker(
    "GF412",
    "Configuration cannot be edited safely",
    "{file} was not changed: {reason}.",
    "Rewrite that part with plain tables (no inline tables, no dotted keys), then run again.",
)

CGROUP_MISMATCH = warning(
    "GF422",
    "nvidia runtime uses another cgroup driver",
    "In {file}, runtime {name} has SystemdCgroup = {ours} and {base} has {theirs}: pods that use "
    "it may be killed repeatedly.",
    "Set both to the same value.",
)

NO_CGROUPS = warning(
    "GF448",
    "Toolkit sets no access to devices",
    "{file} has no-cgroups = true, as for a docker without root. In containers that this docker "
    "runs as root with `--gpus`, NVML can then fail with Unknown Error; docker takes the devices "
    "from CDI from 29.2.0 on.",
    "If it fails: nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=false. A "
    "docker without root then needs CDI devices: docker run --device nvidia.com/gpu=all.",
)

TOOLKIT_FILE_INVALID = warning(
    "GF450",
    "Invalid configuration of the container toolkit",
    "{file} is not valid TOML: {reason}. The runtime nvidia starts no container.",
    "Repair the file: `nvidia-ctk config --config-file={file}` prints it once it is valid. "
    "`nvidia-ctk config default` prints a new one.",
)

LEFT_CHANGED = warning(
    "GF423",
    "Modified setting left in place",
    "{setting} in {file} was written by gpufleet and modified since; it is left in place.",
    "Remove it manually if you do not need it.",
)

NEEDED_BY_OTHERS = warning(
    "GF434",
    "Setting is required by others",
    "{setting} in {file} was written by gpufleet and stays: {user}, which gpufleet did not write, "
    "depends on it.",
    "No action required; remove it together with {user}.",
)

REWRITTEN = warning(
    "GF437",
    "Text that dockerd rejects was replaced",
    "{file} {has}, which this version of dockerd rejects; it is written {how}.",
    "No action required; save the file as UTF-8 without a byte order mark, with at least {{}}.",
)
