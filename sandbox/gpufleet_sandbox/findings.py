"""Findings about the sandbox itself."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

NO_ENGINE = Kind(
    "GF601",
    Severity.BLOCKER,
    "No container engine",
    "The sandbox needs podman or docker: {reason}.",
    "Install podman, or start the docker daemon. `make setup` does it as root or with sudo.",
)
COMMAND_FAILED = Kind(
    "GF602",
    Severity.BLOCKER,
    "Command failed",
    "`{command}` exited with status {status}: {output}",
    "Fix the cause in the output above. `gpufleet sandbox down` removes incomplete hosts.",
)
NOT_UP = Kind(
    "GF603",
    Severity.BLOCKER,
    "Sandbox not up",
    "The sandbox {name!r} is not up: {reason}.{others}",
    "Run `gpufleet sandbox up{option}`.",
)
UNKNOWN_HOST = Kind(
    "GF604",
    Severity.BLOCKER,
    "Unknown sandbox host",
    "No sandbox host is named {host!r}; available: {known}.",
    "Use one of the available names.",
)
UNKNOWN_FAULT = Kind(
    "GF605",
    Severity.BLOCKER,
    "Unknown fault",
    "{host} has no fault {fault!r}; available: {known}.",
    "Run `gpufleet sandbox fault --list` to see what each fault does.",
)
HOST_SILENT = Kind(
    "GF606",
    Severity.BLOCKER,
    "Sandbox host does not respond",
    "{host} did not respond over SSH within {seconds:.0f} seconds: {reason}",
    "Check its log: `{log}`.",
)
NO_PACKAGE = Kind(
    "GF607",
    Severity.BLOCKER,
    "Package for the sandbox not found",
    "This machine's apt sources have none of the packages {packages} ({reason}).",
    "Add an apt source with the component {component}, and check that this machine can reach it.",
)
NOT_ROOT = Kind(
    "GF608",
    Severity.BLOCKER,
    "Sandbox needs root",
    "The sandbox starts privileged containers, and user {user!r} is not root.",
    "Run the command as root or with sudo.",
)
IMAGE_NOT_PULLED = Kind(
    "GF609",
    Severity.BLOCKER,
    "Image of the real distribution not available",
    "Cannot pull {image}: {reason}",
    "Use --images imitation, or check that this machine can reach a registry.",
)
UNKNOWN_KUBERNETES = Kind(
    "GF650",
    Severity.BLOCKER,
    "Unknown Kubernetes version",
    "The sandbox has no control plane of Kubernetes {wanted!r}; available: {known}.",
    "Use one of the available versions.",
)
CLUSTER_NOT_UP = Kind(
    "GF651",
    Severity.BLOCKER,
    "Cluster not up",
    "The cluster {name!r} is not up.",
    "Run `gpufleet sandbox cluster up --name {name}`.",
)
SERVER_ENDED = Kind(
    "GF652",
    Severity.BLOCKER,
    "Control plane not ready",
    "{program} of the cluster {name!r} exited or was not ready within {seconds} seconds: {output}",
    "Check {log}. `gpufleet sandbox cluster down --name {name}` removes the rest of the cluster.",
)
OTHER_KUBERNETES = Kind(
    "GF653",
    Severity.BLOCKER,
    "Cluster runs another version",
    "The cluster {name!r} runs Kubernetes {found}, not {wanted}.",
    "Take it down first, or use another name for the new one.",
)
NOT_BUILT = Kind(
    "GF654",
    Severity.BLOCKER,
    "Program of a cluster could not be built",
    "{what} could not be built: {reason}",
    "Fix the cause and run the command again; finished builds are reused. Without a Go module "
    "proxy, set KUBEBUILDER_ASSETS to a folder with the programs.",
)
NOT_SERVED = Kind(
    "GF655",
    Severity.BLOCKER,
    "Go module not available",
    "{module} could not be downloaded: {reason}",
    "Check GOPROXY and the network; the public proxy does not serve some releases.",
)
BAD_ASSETS = Kind(
    "GF656",
    Severity.BLOCKER,
    "KUBEBUILDER_ASSETS not usable",
    "KUBEBUILDER_ASSETS is set to {folder}, but {reason}.",
    "Set it to the output of `setup-envtest use -p path`, or unset it.",
)
OFFICIAL_CHECKSUM = Kind(
    "GF661",
    Severity.WARNING,
    "Checksum mismatch of an official program",
    "The official {what} was not used: {reason}. It was built from its Go module instead.",
    "It may have been replaced in transit: compare it with the checksum that the project "
    "publishes, and report a wrong checksum in official.yaml.",
)
BAD_CLUSTER_NAME = Kind(
    "GF657",
    Severity.BLOCKER,
    "Invalid cluster name",
    "{name!r} is not a valid cluster name: it is also used as a folder name.",
    "Use up to 63 lower-case letters, digits, dots and hyphens, starting with a letter or digit.",
)
NO_REAL_NODE = Kind(
    "GF659",
    Severity.BLOCKER,
    "Kubelet version not supported",
    "The kubelet of Kubernetes {kubernetes} has not been tested on a sandbox host.",
    "Use a cluster of one of these versions: {known}.",
)
NODE_NOT_READY = Kind(
    "GF660",
    Severity.BLOCKER,
    "Sandbox host is not Ready",
    "{host} is not a Ready node after {seconds} seconds: {reason}",
    "Check its kubelet: `gpufleet sandbox ssh {host} -- journalctl -u kubelet`.",
)
CLUSTER_SILENT = Kind(
    "GF658",
    Severity.BLOCKER,
    "Cluster of a kubeconfig does not respond",
    "The cluster of {kubeconfig} does not respond: {reason}",
    "Check it with `kubectl --kubeconfig {kubeconfig} version`.",
)
OTHER_GPUS = Kind(
    "GF662",
    Severity.BLOCKER,
    "Sandbox host has other GPUs",
    "{host} is up with {found}, not with {wanted}.",
    "Take the sandbox down first: `gpufleet sandbox down --name {name}`.",
)
