"""What docker and containerd say of themselves."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from fakehost import FakeHost

from gpufleet.facts.health import RuntimeAnswer
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections.answers import parse_answers


def test_docker_and_containerd_answer() -> None:
    lines = [
        "asked docker",
        "docker runc io.containerd.runc.v2 nvidia runc",
        "asked containerd",
        "plugin - io.containerd.content.v1.content",
        "plugin ok io.containerd.cri.v1.images",
        "plugin error io.containerd.cri.v1.runtime",
    ]
    assert parse_answers(lines) == {
        "docker": RuntimeAnswer(
            answered=True, default="runc", runtimes=("io.containerd.runc.v2", "nvidia", "runc")
        ),
        "containerd": RuntimeAnswer(
            answered=True,
            cri={"io.containerd.cri.v1.images": "ok", "io.containerd.cri.v1.runtime": "error"},
        ),
    }


def test_a_silent_runtime_has_an_empty_answer_and_one_that_was_not_asked_has_none() -> None:
    assert parse_answers(["asked docker"]) == {"docker": RuntimeAnswer()}
    assert parse_answers([]) == {}


def test_containerd_without_cri_answers() -> None:
    lines = ["asked containerd", "plugin - io.containerd.content.v1.content", "docker", "plugin x"]
    assert parse_answers(lines) == {"containerd": RuntimeAnswer(answered=True)}


PLUGINS = """TYPE                            ID                       PLATFORMS      STATUS
io.containerd.content.v1        content                  -              ok
io.containerd.grpc.v1           cri                      linux/amd64    error
"""


def test_only_runtimes_that_run_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: tuple[str, ...]
) -> None:
    host = FakeHost(tmp_path / "root")
    host.says("docker", "runc nvidia runc\n")
    host.says("ctr", PLUGINS)
    assert parse_node_facts(host.gather(shell, health=True)).answers == {}
    host.file("/run/docker.pid", "1")
    place = host.file("/run/containerd/none", "").parent
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("containerd.sock")
        assert parse_node_facts(host.gather(shell)).answers == {}, "not asked for"
        answers = parse_node_facts(host.gather(shell, health=True)).answers
    assert answers["docker"].runtimes == ("nvidia", "runc")
    assert answers["containerd"].cri == {"io.containerd.grpc.v1.cri": "error"}
    host.command("docker", "exit 1")
    silent = parse_node_facts(host.gather(shell, health=True)).answers["docker"]
    assert not silent.answered
