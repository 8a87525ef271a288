"""What docker and containerd say of themselves."""

from __future__ import annotations

from gpufleet.facts.health import RuntimeAnswer
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
