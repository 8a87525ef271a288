"""Asks a program for machines, and makes the groups of an inventory: for inventories/aws.py etc.

An error is one line: it names the program or API, and the part of its answer that is wrong.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpufleet.core.inventory import CLUSTERS, CONTROL_PLANE, NODES_GROUP
from gpufleet.core.process import Process
from gpufleet.core.visible import one_line

FLEET_TAG = "gpufleet"  # selects a machine; its value, if tags have one, is the group
MACHINE_GROUPS = (CONTROL_PLANE, "cpu_nodes", NODES_GROUP)
MAX_ANSWER_SECONDS = 300.0  # `az vm list -d` asks for the network of each machine
MAX_QUOTED = 200  # letters of a foreign text in an error
MAX_DIGITS = 4  # of a number of GPUs
ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9:._-]*")  # of a name in DNS, or IP
KINDS = {str: "text", int: "a number", list: "a list", dict: "an object", bool: "true or false"}
T = TypeVar("T")


class SourceError(SystemExit):
    """A source gives no hosts. The inventory ends: pyinfra prints the text, without a traceback."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A part of an answer. `title`: the program or API; `path`: of this part in its answer."""

    value: Any
    title: str
    path: str = ""

    def get(self, path: str, kind: type[T]) -> T | None:
        """The value at a path such as `State.Name` or `zones.0`, or None if it is missing or null.

        Raises SourceError if it is of another kind.
        """
        value = self.value
        for key in path.split(".") if path else ():
            if isinstance(value, list) and key.isdecimal():
                value = value[int(key)] if int(key) < len(value) else None
            elif isinstance(value, dict) or value is None:
                value = (value or {}).get(key)
            else:
                raise SourceError(f"{self.at(path)} is missing: {_kind_of(value)} has no {key}")
        if value is None or (isinstance(value, kind) and type(value) is not bool):
            return value
        raise SourceError(f"{self.at(path)} is {_kind_of(value)}, expected {KINDS[kind]}")

    def need(self, path: str, kind: type[T]) -> T:
        """The value at a path. Raises SourceError if it is missing, null or of another kind."""
        value = self.get(path, kind)
        if value is None:
            raise SourceError(f"{self.at(path)} is missing: expected {KINDS[kind]}")
        return value

    def rows(self, path: str = "", *, needed: bool = True) -> list[Answer]:
        """The parts of the list at a path. Unless it is `needed`, it may be missing."""
        values = self.need(path, list) if needed else self.get(path, list) or []
        return [self.part(f"{path}[{at}]", value) for at, value in enumerate(values)]

    def part(self, path: str, value: Any) -> Answer:
        """The part at a path, with this value."""
        return Answer(value, self.title, ".".join(filter(None, (self.path, path))))

    def get_count(self, path: str) -> int | None:
        """The number in a tag, which may be text, or None. Raises SourceError for other text."""
        if isinstance(self.value, dict) and isinstance(self.value.get(path), int):
            return self.get(path, int)
        text = self.get(path, str)
        if text and not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
            raise SourceError(f"{self.at(path)} is {text[:MAX_QUOTED]!a}, expected a number")
        return int(text) if text else None

    def need_group(self, path: str) -> str:
        """The group that a tag names. A hyphen counts as an underscore."""
        group = self.need(path, str).replace("-", "_")
        if group not in MACHINE_GROUPS:
            allowed = ", ".join(MACHINE_GROUPS)
            raise SourceError(f"{self.at(path)} is {group[:MAX_QUOTED]!a}, expected {allowed}")
        return group

    def at(self, path: str) -> str:
        """The place of a path, as `aws ec2 describe-instances: Reservations[0].State`."""
        return ": ".join(filter(None, (self.title, self.part(path, None).path)))


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that is up. `gpus`: their number, if the source knows it; `traits`: data of the
    host, and groups: {"rack": "R1"} gives rack_r1; `labels`: only groups, by kind and value."""

    name: str
    address: str
    group: str = NODES_GROUP
    gpus: int | None = None
    traits: Mapping[str, str | None] = field(default_factory=dict)
    labels: Sequence[tuple[str, str]] = ()

    def data(self) -> dict[str, Any]:
        """The host's data, for pyinfra."""
        count = {"node_gpus": self.gpus} if self.gpus else {}
        traits = {key: one_line(value) for key, value in self.traits.items() if value}
        return {"ssh_hostname": self.address, **count, **traits}

    def own_groups(self) -> list[str]:
        """Groups by traits and labels. "rack" and "R 07" give rack_r_07."""
        labels = [label for label in self.labels if label != ("tag", FLEET_TAG)]
        pairs = [*self.traits.items(), *labels]
        words = [[kind, *re.findall(r"[a-z0-9]+", (value or "").lower())] for kind, value in pairs]
        return list(dict.fromkeys("_".join(each) for each in words if len(each) > 1))


def label_tags(tags: Mapping[str, Any], *without: str) -> list[tuple[str, str]]:
    """Labels of tags that have values: {"team": "vision"} gives the group tag_team_vision."""
    kept = {key: value for key, value in tags.items() if key not in (FLEET_TAG, *without)}
    return [("tag", f"{key} {value}") for key, value in kept.items() if isinstance(value, str)]


def ask_program(*command: str, title: str, install: str) -> Answer:
    """The JSON that a program prints. `title`: its name in errors; `install`: how to get it.

    Raises SourceError if the program is missing, fails, or prints anything else.
    """
    try:
        done = Process(command, timeout=MAX_ANSWER_SECONDS).wait()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SourceError(f"{title}: cannot start {command[0]} ({why}): {install}") from None
    if not done.ok:
        why = done.why or _error_line(done.stderr) or f"it exits with status {done.code}"
        raise SourceError(f"{title} fails: {why}")
    return parse_answer(done.stdout, title)


def parse_answer(text: str | bytes, title: str) -> Answer:
    """An answer in JSON. Raises SourceError if it is anything else."""
    try:
        return Answer(json.loads(text), title)
    except (ValueError, RecursionError):
        raise SourceError(f"{title}: the answer is not JSON") from None


def group_machines(machines: Iterable[Machine], nothing: str) -> dict[str, Any]:
    """The groups of an inventory. `nothing`: the error without machines.

    GPUFLEET_SSH_USER and GPUFLEET_SSH_KEY say how to reach the hosts. If GPUFLEET_KUBECONFIG is
    set, they form the cluster of the group gpu_cluster.
    """
    machines = list(machines)
    if not machines:
        raise SourceError(nothing)
    _refuse_names(machines)
    groups: dict[str, Any] = {}
    for machine in machines:
        hosts, _ = groups.setdefault(machine.group, ([], _login()))
        hosts.append((machine.name, machine.data()))
    for machine in machines:
        for name in machine.own_groups():
            groups.setdefault(name, []).append(machine.name)
    if kubeconfig := os.environ.get("GPUFLEET_KUBECONFIG"):
        groups[CLUSTERS] = (["@local"], {"cluster_kubeconfig": kubeconfig})
    return groups


def _refuse_names(machines: Sequence[Machine]) -> None:
    """Raise SourceError for names that pyinfra takes for something else, or for one host."""
    seen: set[str] = set()
    for machine in machines:
        if machine.name[:1] in ("", "@", "-") or not machine.name.isprintable():
            raise SourceError(f"{machine.name[:MAX_QUOTED]!a} cannot be the name of a host")
        if not ADDRESS.fullmatch(machine.address):
            raise SourceError(f"{machine.name} has no address: {machine.address[:MAX_QUOTED]!a}")
        if machine.name in seen:
            raise SourceError(f"two machines have the name {machine.name}: rename one")
        seen.add(machine.name)


def _login() -> dict[str, Any]:
    """How hosts are reached. pyinfra adds group_data to it, so each group gets its own."""
    user, key = os.environ.get("GPUFLEET_SSH_USER"), os.environ.get("GPUFLEET_SSH_KEY")
    login = {"ssh_user": user, "_sudo": user != "root"} if user else {}
    return {**login, "ssh_key": key} if key else login


def _error_line(text: str) -> str:
    """The line of a program's output that says what failed, short and visible."""
    lines = [line.strip(" │╷╵") for line in text.splitlines()]
    lines = [line for line in lines if re.search(r"\w", line)]
    errors = [line for line in lines if "error" in line.lower()]
    return one_line((errors or lines or [""])[-1])[:MAX_QUOTED]


def _kind_of(value: object) -> str:
    return KINDS.get(type(value), "a number")
