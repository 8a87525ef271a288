"""Container engines that gpufleet does not configure: how each of them gets GPUs. Pure."""

from __future__ import annotations

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts
from gpufleet.toolkit.findings import runtimes as found

SNAP = "snap.docker.dockerd.service"
MICROK8S = "snap.microk8s.daemon-containerd.service"
K0S = frozenset({"k0scontroller.service", "k0sworker.service"})


def other_engines(facts: NodeFacts) -> list[Finding]:
    """A finding for each engine on the host that gpufleet does not configure."""
    there = {
        found.SNAP_DOCKER: SNAP in facts.services,
        found.MICROK8S: MICROK8S in facts.services,
        found.K0S: not K0S.isdisjoint(facts.services),
        found.DOCKER_DESKTOP: "docker-desktop" in facts.packages,
        found.ROOTLESS_DOCKER: facts.rootless_docker,
        found.PODMAN: "podman" in facts.packages and not facts.runtimes,
    }
    return [kind() for kind, seen in there.items() if seen]
