"""Container runtimes, how a change takes effect, and CDI specs."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

FLAG_CONFLICT = blocker(
    "GF404",
    "Option set in both the unit and daemon.json",
    "{unit} starts dockerd with {flags}, and {file} has, or would get, the same options. dockerd "
    "does not start with an option in both places.",
    "Set each option in one place: remove it from the unit's ExecStart or from {file}.",
)

CRI_DISABLED = info(
    "GF409",
    "containerd's CRI plugin is disabled",
    "{file} disables the CRI plugin, as in docker's containerd.io package. No kubelet can use "
    "this containerd, and docker does not need the runtime here. Nothing was changed.",
    "For a Kubernetes node, write a full configuration first (`containerd config default`).",
)

CLUSTER_OWNS_CONFIG = info(
    "GF410",
    "k3s and RKE2 configure containerd themselves",
    "{unit} generates {file} at each start and adds the nvidia runtime when {binary} is "
    "installed. gpufleet does not write to it.",
    "No action required; use a RuntimeClass named nvidia.",
)

CLUSTER_LACKS_RUNTIME = warning(
    "GF447",
    "k3s or RKE2 did not add the nvidia runtime",
    "{unit} generated {file} without the runtime nvidia, though the container toolkit is "
    "installed: pods that name this runtime do not start.",
    "Restart it: systemctl restart {unit}. If the runtime is missing afterwards, a template of "
    'yours beside {file} leaves it out: begin the template with {{{{ template "base" . }}}}.',
)

CLUSTER_DEFAULT_RUNTIME = warning(
    "GF411",
    "Default runtime of k3s and RKE2 is set in their own configuration",
    "toolkit_default_runtime is set, but {unit} generates {file} at each start.",
    "Add `default-runtime: nvidia` to {config} and restart {unit}.",
)

RESTART_NEEDED = warning(
    "GF413",
    "Runtime requires a restart",
    "{unit} requires a restart ({reason}), which was skipped: {why}.",
    "Drain the host and run again with toolkit_restart on, or set toolkit_allow_disruption = True, "
    "or restart it when convenient: systemctl restart {unit}",
)

CDI_UNSUPPORTED = info(
    "GF415",
    "CDI is not enabled in the runtime",
    "{runtime} supports CDI from {since} on, and its version is {version}.",
    "Use the nvidia runtime, or a newer {runtime}.",
)

CDI_DUPLICATE = warning(
    "GF416",
    "Two CDI specs define the same devices",
    "Both {ours} and {other} define nvidia.com/gpu; the stale one may take effect.",
    "Remove {other}, unless another tool updates it.",
)

RUNTIMES_DIFFER = warning(
    "GF419",
    "toolkit_runtimes does not fit the host",
    "toolkit_runtimes {lists} {runtime}, which is {there}.",
    "List the installed runtimes whose containers need GPUs, or install {runtime}.",
)

NO_RUNTIME = info(
    "GF420",
    "No container runtime",
    "Neither docker nor containerd nor CRI-O is installed; only the toolkit packages are.",
    "No action required for Enroot, which calls nvidia-container-cli itself. For another engine, "
    "run again after it is installed.",
)

OTHER_ENGINE = info(
    "GF166",
    "Container engine that gpufleet does not configure",
    "{what}; gpufleet does not configure it.",
    "{how}",
    description="docker as a snap, docker without root, Docker Desktop, MicroK8s, Canonical "
    "Kubernetes, k0s or Podman is on the host. gpufleet configures docker from packages, "
    "containerd and CRI-O.",
    advice="The finding says how containers of this engine get GPUs.",
)

OLD_CONFIG_VERSION = warning(
    "GF427",
    "Outdated containerd configuration version",
    "{file} has configuration version 1: containerd {version} ignores its [plugins.cri].",
    'Put version = 2 at the top of {file}, and write [plugins."io.containerd.grpc.v1.cri"] for '
    "[plugins.cri].",
)

CONFIG_MOVED = blocker(
    "GF430",
    "Configuration changed during the run",
    "{file} changed since this run read it, so it was not written.",
    "Another program or person is editing it: run again when they are done.",
)

PARSER_REFUSES = blocker(
    "GF431",
    "Runtime rejected the new configuration",
    "{runtime}'s own parser rejects the new {file}; the previous file is in place.",
    "The parser's output follows. The file may contain options that this version does not support.",
)

RUNTIME_DOWN = blocker(
    "GF432",
    "Runtime did not come up",
    "{unit} does not work with the new {file} as before; the previous file was restored.",
    "What is missing and the end of its log follow. Fix the cause, then run again.",
)

NOT_TAKEN_UP = blocker(
    "GF436",
    "Runtime ignores its configuration",
    "{runtime} accepts the new {file}, but the nvidia runtime is missing from its effective "
    "configuration; the previous file is in place.",
    "Find what overrides it: an imported file, or an unsupported `version`.",
)

RUNTIME_FAILED = warning(
    "GF439",
    "Runtime has failed",
    "{unit} has failed, so gpufleet cannot test its configuration.",
    "See `systemctl status {unit}`, start it, and run again.",
)

CONTAINERS_BEGAN = blocker(
    "GF440",
    "Containers started during the run",
    "Containers that a restart of {unit} would stop were started after the host was examined. "
    "{unit} was not restarted and its previous configuration is in place. The containers are "
    "listed below.",
    "Run again: it then leaves the restart to you. Or set toolkit_allow_disruption = "
    "True to let the containers be stopped.",
)

RUNTIME_IN_USE = blocker(
    "GF564",
    "Running containers would lose the nvidia runtime",
    "{containers:container runs|containers run} in {runtime}; removing nvidia-container-runtime "
    "would leave those that use it impossible to stop or exec into. Nothing was removed.",
    "Stop the containers (on a node, those of DaemonSets too), or set "
    "toolkit_allow_disruption = True.",
)
