"""A restart of containerd restarts a docker that requires it, which stops docker's containers."""

from __future__ import annotations

import pytest

from gpufleet.facts.model import NodeFacts, Service
from gpufleet.facts.sections.services import parse_services
from tests.unit.hosts import bare_host
from tests.unit.toolkit.toolkit_setup import CONFIG, CRI_1, DAEMON, codes, file, plan, runtime

MINE = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'


def host(needs: str, *, containers: int = 2, live_restore: bool = False) -> NodeFacts:
    """docker 20.10 beside a containerd that a kubelet uses. `needs`: a line of docker's unit."""
    shown = ("Names=docker.service", "LoadState=loaded", "ActiveState=active", needs)
    containerd = Service("containerd.service", "loaded", "active", "enabled")
    return bare_host(
        files=file(DAEMON, MINE) | file(CONFIG, CRI_1),
        runtimes=runtime("docker", "20.10.24", containers=containers, live_restore=live_restore)
        | runtime("containerd", "1.7.27"),
        services={"containerd.service": containerd, **parse_services(shown)},
    )


@pytest.mark.parametrize(
    "needs",
    [
        "Requires=docker.socket containerd.service sysinit.target",  # docker-ce-packaging#508
        "BindsTo=containerd.service",  # docker/for-linux#678
    ],
)
def test_containers_of_docker_are_not_stopped_by_containerd(needs: str) -> None:
    done = plan(host(needs), runtimes="containerd")
    (containerd,) = done.runtimes
    assert containerd.change is not None
    assert (containerd.activation, containerd.postponed) == ("none", True)
    note = next(each for each in done.findings if each.code == "GF413")
    assert "2 containers are running" in note.message
    assert "docker.service requires containerd.service" in note.message


def test_they_may_be_stopped_if_that_is_allowed() -> None:
    facts = host("Requires=containerd.service")
    (containerd,) = plan(facts, runtimes="containerd", allow_disruption=True).runtimes
    assert (containerd.activation, containerd.spare) == ("restart", False)


def test_the_command_looks_again_for_containers() -> None:
    facts = host("Requires=containerd.service", containers=0)
    (containerd,) = plan(facts, runtimes="containerd").runtimes
    assert (containerd.activation, containerd.spare) == ("restart", True)


@pytest.mark.parametrize(
    "facts",
    [
        host("Requires=docker.socket sysinit.target"),  # docker-ce-packaging#512
        host("Requires=containerd.service", live_restore=True),
    ],
)
def test_a_docker_that_keeps_its_containers_does_not_matter(facts: NodeFacts) -> None:
    done = plan(facts, runtimes="containerd")
    (containerd,) = done.runtimes
    assert (containerd.activation, containerd.spare) == ("restart", False)
    assert "GF413" not in codes(done)
