"""The hosts that are measured: copies of one kind in a sandbox of their own."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from gpufleet_sandbox import Sandbox
from gpufleet_sandbox.apt import PrivateApt, machine_sources
from gpufleet_sandbox.host import Host

KIND = "ubuntu2204"
AT_ONCE = 4
HISTORY = "/var/log/apt/history.log"
RECORD = "/var/lib/gpufleet/provenance.json"
S = TypeVar("S")
T = TypeVar("T")


def each(hosts: Iterable[S], work: Callable[[S], T], at_once: int = AT_ONCE) -> list[T]:
    """`work` on every host, some at once; the results in order."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(work, hosts))


@dataclass
class Fleet:
    """The sandbox `name`, which grows with the number of hosts that is measured."""

    name: str
    work: Path  # folder for files between the steps
    progress: Callable[[str], None]
    kind: str = KIND
    prepare: Callable[[Host], object] | None = None  # done to a bare host

    @property
    def box(self) -> Sandbox:
        return Sandbox(self.name, self.progress, images="imitation")

    @property
    def env(self) -> dict[str, str]:
        """Environment with which inventories/sandbox.py loads these hosts."""
        return {"GPUFLEET_SANDBOX": self.name}

    def grow(self, count: int) -> list[Host]:
        """`count` hosts; those that are missing are started bare."""
        self.box.up([self.kind], count)
        hosts = [host for host in self.box.hosts.values() if host.kind.name == self.kind]
        if len(hosts) > count:
            raise SystemExit(
                f"The sandbox {self.name!r} has {len(hosts)} hosts already, {count} are wanted. "
                f"Take it down first: gpufleet sandbox down --name {self.name}"
            )
        return hosts

    def reset(self, hosts: Iterable[Host]) -> None:
        """Make the hosts bare again."""
        each(hosts, Host.reset)
        if self.prepare:
            each(hosts, self.prepare)

    def down(self) -> None:
        self.box.down()


def commands_run(hosts: Iterable[Host]) -> list[int]:
    """How many commands sshd has started on each host since its boot."""
    return each(hosts, lambda host: len(host.sessions()))


def record(host: Host) -> dict[str, Any]:
    """gpufleet's record on the host."""
    found: dict[str, Any] = json.loads(host.get(RECORD))
    return found


def apt_commands(host: Host) -> list[str]:
    """The install commands that apt was given on this host, by its own log."""
    prefix = "Commandline: "
    lines = [line for line in host.get(HISTORY).splitlines() if line.startswith(prefix)]
    return [line.removeprefix(prefix) for line in lines if " install " in line]


def read_file(host: Host, path: str) -> bytes:
    """A file of the host, whatever is in it."""
    return base64.b64decode(host.output(f"base64 -w 0 {path}"))


def write_file(host: Host, path: str, data: bytes) -> None:
    """Write a file on the host, whatever is in it."""
    host.run(
        f"mkdir -p $(dirname {path}) && base64 -d > {path}", stdin=base64.b64encode(data).decode()
    )


def add_python_apt(hosts: Iterable[Host], work: Path) -> None:
    """Give the hosts the Python binding of apt, which Ubuntu has and Ansible's apt module needs.

    The hosts are made of this machine's distribution, so its package fits them.
    """
    archive = work / "python-apt.tar"
    if not archive.exists():
        _pack_python_apt(work, archive)
    data = base64.b64encode(archive.read_bytes()).decode()

    def unpack(host: Host) -> None:
        host.run("python3 -c 'import apt' 2>/dev/null || base64 -d | tar -x -C /", stdin=data)
        host.run("python3 -c 'import apt, apt_pkg'")

    each(hosts, unpack)


def _pack_python_apt(work: Path, archive: Path) -> None:
    apt = PrivateApt(work / "apt", machine_sources())
    apt.update()
    root = apt.fetch(["python3-apt"])
    with tarfile.open(archive, "w") as tar:
        tar.add(root / "usr" / "lib", "usr/lib")
