"""Parses the answers of the running container runtimes and of the kubelet about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpufleet.facts.health import KubeletAnswer, RuntimeAnswer
from gpufleet.facts.sections import split_records

NOT_CRI = "-"  # state of plugins that are not about CRI
KUBELET_DEFAULT = "cgroupfs"  # cgroup driver of a kubelet that names none
_DRIVERS = {"true": "systemd", "false": "cgroupfs"}  # SystemdCgroup -> cgroup driver


def parse_answers(lines: Sequence[str]) -> dict[str, RuntimeAnswer]:
    """The answers by runtime. A runtime that was asked and is silent has an empty answer."""
    asked: set[str] = set()
    docker: list[str] = []
    plugins: dict[str, str] = {}
    of_runtime: list[tuple[str, list[str]]] = []
    for word, rest in split_records(lines):
        words = rest.split()
        if word == "asked" and words:
            asked.add(words[0])
        elif word == "docker":
            docker = words
        elif word == "plugin" and len(words) == 2:
            plugins[words[1]] = words[0]
        elif words:
            of_runtime.append((word, words))
    answers = {
        "docker": RuntimeAnswer(
            answered=bool(docker),
            default=docker[0] if docker else "",
            runtimes=tuple(docker[1:]),
        ),
        "containerd": RuntimeAnswer(
            answered=bool(plugins),
            default=_default(of_runtime, "containerd"),
            runtimes=_handlers(of_runtime, "containerd"),
            cri={name: state for name, state in plugins.items() if state != NOT_CRI},
            cgroups=_cgroups(of_runtime, "containerd"),
        ),
        "crio": RuntimeAnswer(
            answered=any(words[0] == "crio" for _, words in of_runtime),
            default=_default(of_runtime, "crio"),
            runtimes=_handlers(of_runtime, "crio"),
            cgroups=_cgroups(of_runtime, "crio"),
        ),
    }
    return {name: answer for name, answer in answers.items() if name in asked}


def _records(
    of_runtime: Iterable[tuple[str, list[str]]], record: str, name: str
) -> Iterable[list[str]]:
    """The words after the runtime's name, of each record of a kind."""
    return (words[1:] for word, words in of_runtime if (word, words[0]) == (record, name))


def _default(of_runtime: Iterable[tuple[str, list[str]]], name: str) -> str:
    return next((words[0] for words in _records(of_runtime, "default", name) if words), "")


def _handlers(of_runtime: Iterable[tuple[str, list[str]]], name: str) -> tuple[str, ...]:
    return tuple(words[0] for words in _records(of_runtime, "handler", name) if words)


def _cgroups(of_runtime: Sequence[tuple[str, list[str]]], name: str) -> dict[str, str]:
    """The cgroup driver by handler; under "" that of all handlers, as CRI-O has it."""
    of_all = next((words[0] for words in _records(of_runtime, "cgroups", name) if words), "")
    found = {"": of_all} if of_all else {}
    for words in (*_records(of_runtime, "file", name), *_records(of_runtime, "handler", name)):
        if len(words) == 2 and words[1] in _DRIVERS:
            found[words[0]] = _DRIVERS[words[1]]
    return found


def parse_kubelet(lines: Sequence[str]) -> KubeletAnswer | None:
    """What a running kubelet was started with, or None without one. Options beat its files."""
    version, options, files = "", dict[str, str](), dict[str, str]()
    for word, rest in split_records(lines):
        key, _, value = rest.partition(" ")
        if word == "version":
            version = rest.removeprefix("Kubernetes ")
        elif word == "option":
            options[key] = value
        elif word == "file":
            files[key] = value
    if not any((version, options, files)):
        return None
    settings = {**files, **options}
    return KubeletAnswer(
        version=version,
        cgroups=settings.get("cgroupDriver", "") or KUBELET_DEFAULT,
        endpoint=settings.get("containerRuntimeEndpoint", ""),
    )
