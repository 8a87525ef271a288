"""Compare the first installation with the package manager's time for the same transactions."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.fleet import Fleet, apt_commands, each, read_file, record, write_file
from benchmarks.ours import Programs
from benchmarks.stats import Summary
from gpufleet.packages import components
from gpufleet_sandbox.host import Host

LIMIT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class First:
    """`ours`: gpu_node on bare hosts; `manager`: the slowest host's apt; both in seconds.

    `operations`: those of another run of gpu_node on the same bare hosts, with their seconds.
    `driver`: which.
    """

    hosts: int
    ours: Summary
    manager: Summary
    operations: Sequence[tuple[str, float]]
    driver: str = "the sandbox's"


@dataclass(frozen=True, slots=True)
class ByHand:
    """apt's part of a first installation: the commands that gpufleet gave it, and their sources."""

    files: dict[str, bytes]
    commands: list[str]

    @classmethod
    def seen_on(cls, host: Host, before: Sequence[str]) -> ByHand:
        """The apt commands that ran on `host` after `before`, and the files that they need."""
        files = {path: read_file(host, path) for path in sources(record(host))}
        return cls(files, apt_commands(host)[len(before) :])

    @property
    def script(self) -> str:
        return "; ".join(
            ["set -e", "export DEBIAN_FRONTEND=noninteractive", "apt-get -q update", *self.commands]
        )

    def seconds(self, hosts: Sequence[Host]) -> float:
        """Run it on bare hosts at the same time; the time of the slowest."""
        for host in hosts:
            for path, data in self.files.items():
                write_file(host, path, data)
        return max(each(hosts, self._time, at_once=len(hosts)))

    def _time(self, host: Host) -> float:
        began = time.monotonic()
        host.ssh(f"sudo bash -c {shlex.quote(self.script)}", timeout=LIMIT_SECONDS)
        return time.monotonic() - began


def sources(known: Mapping[str, Any]) -> list[str]:
    """The files of apt's repositories, from gpufleet's record."""
    roles = [known[role] for role in ("driver", "toolkit") if role in known]
    files = [role[key] for role in roles for key in ("keyring", "source_file") if role.get(key)]
    return files + [path for path in known.get("files", {}) if path == components.COMPONENTS_PATH]


def measure(
    fleet: Fleet,
    hosts: Sequence[Host],
    programs: Programs,
    rounds: int,
    progress: Callable[[str], None],
) -> First:
    """Alternately gpu_node and apt alone, on hosts that are made bare before each; ends converged.

    One run of gpu_node before the rounds is not counted: it says what apt has to do, and how long
    each operation takes.
    """
    fleet.reset(hosts)
    before = apt_commands(hosts[0])
    operations = programs.gpu_node_by_operation()
    by_hand = ByHand.seen_on(hosts[0], before)
    ours, manager = [], []
    for number in range(rounds):
        fleet.reset(hosts)
        manager.append(by_hand.seconds(hosts))
        fleet.reset(hosts)
        ours.append(programs.gpu_node(changes=True).wall)
        progress(
            f"{len(hosts)} bare hosts, round {number + 1} of {rounds}: "
            f"apt alone {manager[-1]:.1f} s, gpufleet {ours[-1]:.1f} s"
        )
    return First(len(hosts), Summary.of(ours), Summary.of(manager), operations)
