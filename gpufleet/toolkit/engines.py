"""Container engines that gpufleet does not configure: how each of them gets GPUs. Pure."""

from __future__ import annotations

from gpufleet.core.findings import Finding, Severity
from gpufleet.facts.model import NodeFacts
from gpufleet.toolkit.findings.runtimes import OTHER_ENGINE

SNAP = "snap.docker.dockerd.service"
MICROK8S = "snap.microk8s.daemon-containerd.service"
CANONICAL = "snap.k8s.containerd.service"
K0S = frozenset({"k0scontroller.service", "k0sworker.service"})
WITHOUT_GPUS = ("snap", "Docker Desktop")  # as they are
ENGINES = {  # name -> description and remedy
    "snap": (
        "docker here is a snap with a container toolkit of its own, which reads "
        "/var/snap/docker/current/config/daemon.json",
        "To keep the snap, see whether its toolkit works: docker run --rm --gpus all ubuntu "
        "nvidia-smi (https://github.com/canonical/docker-snap). Otherwise replace it: `snap remove "
        "docker`, which removes its containers and images, then install docker.io or docker-ce, "
        "and run again.",
    ),
    "MicroK8s": (
        "MicroK8s has its own containerd, which reads "
        "/var/snap/microk8s/current/args/containerd-template.toml",
        "Run `microk8s enable nvidia` on one node of the cluster: it installs NVIDIA's GPU "
        "Operator.",
    ),
    "Canonical Kubernetes": (
        "Canonical Kubernetes has its own containerd, which reads /etc/containerd/config.toml and "
        "the files of /etc/containerd/conf.d",
        "Install NVIDIA's GPU Operator in the cluster: its toolkit configures this containerd, but "
        "not one in another base directory (https://github.com/canonical/k8s-snap/issues/1991).",
    ),
    "k0s": (
        "k0s has its own containerd, which reads /etc/k0s/containerd.toml and the files of "
        "/etc/k0s/containerd.d",
        "Add the runtime nvidia in a file of /etc/k0s/containerd.d (k0s 1.27.1 or newer), then "
        "restart k0s (https://docs.k0sproject.io/stable/runtime/).",
    ),
    "Docker Desktop": (
        "Docker Desktop runs containers in a virtual machine, which has no GPUs on Linux",
        "Install docker-ce or docker.io beside it, run again, and use its context: docker context "
        "use default.",
    ),
    "rootless docker": (
        "A user runs docker without root, with a configuration of the user's "
        "(~/.config/docker/daemon.json)",
        "As that user: nvidia-ctk runtime configure --runtime=docker "
        "--config=$HOME/.config/docker/daemon.json; systemctl --user restart docker. If no other "
        "runtime on the host uses GPUs, as root: nvidia-ctk config --set "
        "nvidia-container-cli.no-cgroups --in-place; otherwise use CDI devices "
        "(docker run --device nvidia.com/gpu=all), which docker has from 25 on.",
    ),
    "Podman": (
        "Podman needs no configuration: it reads the CDI specifications of the toolkit",
        "`podman run --device nvidia.com/gpu=all IMAGE` has the GPUs with Podman 5.1 or newer. "
        "An older one cannot read the specifications of toolkit 1.19 (unresolvable CDI devices): "
        "set NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes in "
        "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env and restart "
        "nvidia-cdi-refresh.service.",
    ),
}


def other_engines(facts: NodeFacts) -> list[Finding]:
    """A finding for each engine on the host that gpufleet does not configure."""
    there = {
        "snap": SNAP in facts.services,
        "MicroK8s": MICROK8S in facts.services,
        "Canonical Kubernetes": CANONICAL in facts.services,
        "k0s": not K0S.isdisjoint(facts.services),
        "Docker Desktop": "docker-desktop" in facts.packages,
        "rootless docker": facts.rootless_docker,
        "Podman": "podman" in facts.packages and not facts.runtimes,
    }
    found = []
    for name, (what, how) in ENGINES.items():
        if there[name]:
            severity = Severity.WARNING if name in WITHOUT_GPUS else Severity.INFO
            found.append(OTHER_ENGINE(severity, what=what, how=how))
    return found
