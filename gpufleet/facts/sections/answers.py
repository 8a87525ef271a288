"""Parses the answers of the running container runtimes and of the kubelet about themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gpufleet.facts.health import KubeletAnswer, RuntimeAnswer
from gpufleet.facts.sections import split_records

NOT_CRI = "-"  # state of plugins that are not about CRI
KUBELET_DEFAULT = "cgroupfs"  # cgroup driver of a kubelet that names none
_DRIVERS = {"true": "systemd", "false": "cgroupfs"}  # SystemdCgroup -> cgroup driver
# (runtime, kind of record) -> the words of each record after the runtime's name
Records = dict[tuple[str, str], list[list[str]]]


def parse_answers(lines: Sequence[str]) -> dict[str, RuntimeAnswer]:
    """The answers by runtime. A runtime that was asked and is silent has an empty answer."""
    asked: set[str] = set()
    docker: list[str] = []
    plugins: dict[str, str] = {}
    records: Records = defaultdict(list)
    for word, rest in split_records(lines):
        words = rest.split()
        if word == "asked" and words:
            asked.add(words[0])
        elif word == "docker":
            docker = words
        elif word == "plugin" and len(words) == 2:
            plugins[words[1]] = words[0]
        elif words:
            records[words[0], word].append(words[1:])
    cri = {name: state for name, state in plugins.items() if state != NOT_CRI}
    answers = {
        "docker": RuntimeAnswer(bool(docker), "".join(docker[:1]), tuple(docker[1:])),
        "containerd": _answer(records, "containerd", answered=bool(plugins), cri=cri),
        "crio": _answer(records, "crio", answered=any(name == "crio" for name, _ in records)),
    }
    return {name: answer for name, answer in answers.items() if name in asked}


def _answer(records: Records, name: str, **more: Any) -> RuntimeAnswer:
    """The answer of a runtime. Its `cgroups` have CRI-O's driver of all handlers under ""."""
    default, handlers, of_all = (
        tuple(words[0] for words in records.get((name, record), ()) if words)
        for record in ("default", "handler", "cgroups")
    )
    cgroups = {"": of_all[0]} if of_all else {}
    for words in (*records.get((name, "file"), ()), *records.get((name, "handler"), ())):
        if len(words) == 2 and words[1] in _DRIVERS:
            cgroups[words[0]] = _DRIVERS[words[1]]
    return RuntimeAnswer(default="".join(default[:1]), runtimes=handlers, cgroups=cgroups, **more)


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
