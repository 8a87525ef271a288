"""What can go wrong with the sandbox itself."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

NO_ENGINE = Kind(
    "GF601",
    Severity.BLOCKER,
    "No container engine",
    "The sandbox needs podman or docker, and {reason}.",
    "Install podman, or start the docker daemon: `make setup` does it where it may.",
)
COMMAND_FAILED = Kind(
    "GF602",
    Severity.BLOCKER,
    "A command of the sandbox failed",
    "`{command}` ended with status {status}: {output}",
    "Read the text above; `gpufleet sandbox down` clears what is half done.",
)
NOT_UP = Kind(
    "GF603",
    Severity.BLOCKER,
    "Sandbox not up",
    "The sandbox {name!r} is not up: {reason}.",
    "Run `gpufleet sandbox up{option}`.",
)
UNKNOWN_HOST = Kind(
    "GF604",
    Severity.BLOCKER,
    "Unknown sandbox host",
    "There is no sandbox host {host!r}; there are: {known}.",
    "Use one of these names.",
)
UNKNOWN_FAULT = Kind(
    "GF605",
    Severity.BLOCKER,
    "Unknown fault",
    "There is no fault {fault!r} for {host}; there are: {known}.",
    "`gpufleet sandbox fault --list` says what each of them does.",
)
HOST_SILENT = Kind(
    "GF606",
    Severity.BLOCKER,
    "Sandbox host does not answer",
    "{host} did not answer over SSH within {seconds:.0f} seconds: {reason}",
    "Look at its log: `{log}`.",
)
NO_PACKAGE = Kind(
    "GF607",
    Severity.BLOCKER,
    "Package for the sandbox not found",
    "None of the packages {packages} can be had from this machine's apt sources ({reason}).",
    "Give this machine an apt source with the component {component}, or connect it to one.",
)
NOT_ROOT = Kind(
    "GF608",
    Severity.BLOCKER,
    "Sandbox needs root",
    "The sandbox starts privileged containers and user {user!r} may not.",
    "Run it as root, or with sudo.",
)
IMAGE_NOT_PULLED = Kind(
    "GF609",
    Severity.BLOCKER,
    "Image of the real distribution not available",
    "{image} cannot be pulled: {reason}",
    "Use --images imitation, or connect this machine to a registry.",
)
UNKNOWN_KUBERNETES = Kind(
    "GF650",
    Severity.BLOCKER,
    "Unknown Kubernetes version",
    "No control plane is known for Kubernetes {wanted!r}; there are: {known}.",
    "Use one of these.",
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
    "Part of a control plane ended",
    "{program} of the cluster {name!r} ended or was not ready after {seconds} seconds: {output}",
    "Read {log}; `gpufleet sandbox cluster down --name {name}` clears what is left.",
)
OTHER_KUBERNETES = Kind(
    "GF653",
    Severity.BLOCKER,
    "Cluster is up with another version",
    "The cluster {name!r} is up with Kubernetes {found}, not {wanted}.",
    "Take it down first, or give the new one another --name.",
)
NOT_BUILT = Kind(
    "GF654",
    Severity.BLOCKER,
    "A program of a cluster could not be built",
    "{what} could not be built: {reason}",
    "Run the same command again once the cause is gone: what was built is kept. Without a Go "
    "module proxy, put the programs into a folder and name it in KUBEBUILDER_ASSETS.",
)
NOT_SERVED = Kind(
    "GF655",
    Severity.BLOCKER,
    "Go module cannot be had",
    "{module} cannot be downloaded: {reason}",
    "Check GOPROXY and the connection; some releases are not served by the public proxy.",
)
BAD_ASSETS = Kind(
    "GF656",
    Severity.BLOCKER,
    "KUBEBUILDER_ASSETS is of no use",
    "KUBEBUILDER_ASSETS names {folder}, and {reason}.",
    "Run `setup-envtest use -p path` and set it to what that prints, or unset it.",
)
OFFICIAL_CHECKSUM = Kind(
    "GF661",
    Severity.WARNING,
    "An official program has another checksum",
    "The official {what} was not used: {reason}. It was built from its Go module instead.",
    "Something on the way may have replaced it: compare with the checksum that the project "
    "publishes, and report it where official.yaml is wrong.",
)
BAD_CLUSTER_NAME = Kind(
    "GF657",
    Severity.BLOCKER,
    "Name of a cluster refused",
    "{name!r} cannot be the name of a cluster: it becomes the name of a folder.",
    "Use up to 63 lower-case letters, digits, dots and hyphens, and begin with a letter or digit.",
)
NO_REAL_NODE = Kind(
    "GF659",
    Severity.BLOCKER,
    "Kubelet not tried",
    "No kubelet of Kubernetes {kubernetes} has run on a sandbox host yet.",
    "Take a cluster of one of these versions: {known}.",
)
NODE_NOT_READY = Kind(
    "GF660",
    Severity.BLOCKER,
    "Sandbox host is no node",
    "{host} is not a node that is Ready after {seconds} seconds: {reason}",
    "Look at its kubelet: `gpufleet sandbox ssh {host} -- journalctl -u kubelet`.",
)
CLUSTER_SILENT = Kind(
    "GF658",
    Severity.BLOCKER,
    "Cluster of a kubeconfig does not answer",
    "The cluster of {kubeconfig} does not answer: {reason}",
    "Try `kubectl --kubeconfig {kubeconfig} version`.",
)
