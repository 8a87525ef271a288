"""Parses the answers of the running container runtimes about themselves."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.facts.health import RuntimeAnswer
from gpufleet.facts.sections import split_records

NOT_CRI = "-"  # state of plugins that are not about CRI


def parse_answers(lines: Sequence[str]) -> dict[str, RuntimeAnswer]:
    """The answers by runtime. A runtime that was asked and is silent has an empty answer."""
    asked: list[str] = []
    docker: list[str] = []
    plugins: dict[str, str] = {}
    for word, rest in split_records(lines):
        words = rest.split()
        if word == "asked" and words:
            asked.append(words[0])
        elif word == "docker":
            docker = words
        elif word == "plugin" and len(words) == 2:
            plugins[words[1]] = words[0]
    answers = {
        "docker": RuntimeAnswer(
            answered=bool(docker), default=docker[0] if docker else "", runtimes=tuple(docker[1:])
        ),
        "containerd": RuntimeAnswer(
            answered=bool(plugins),
            cri={name: state for name, state in plugins.items() if state != NOT_CRI},
        ),
    }
    return {name: answer for name, answer in answers.items() if name in asked}
