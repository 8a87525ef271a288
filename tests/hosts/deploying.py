"""Runs deploys as users do: the pyinfra command on an inventory, with a JSON report."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

from gpufleet_sandbox import Host
from tests import warm

ROOT = Path(__file__).resolve().parents[2]
PYINFRA = Path(sys.executable).with_name("pyinfra")
INVENTORY = """\
import json

from gpufleet_sandbox.inventory import group_data, nodes

WANTED = json.loads({wanted!r})
DATA = json.loads({data!r})
found = dict(nodes({sandbox!r}))
hosts = [(name, {{**found[name], **DATA, **data}}) for name, data in WANTED.items()]
gpu_nodes = (hosts, group_data())
for name in {groups!r}:
    globals()[name] = list(WANTED)
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit status, output and report of a run."""

    returncode: int
    output: str  # standard output and error, interleaved
    report: dict[str, Any] = field(default_factory=dict)  # host -> its part of the JSON report

    def codes(self, host: str) -> set[str]:
        """Codes of the findings of a host, and of the errors of its operations."""
        part = self.report[host]
        found = {finding["code"] for finding in part["findings"]}
        return found | {word for error in part["errors"] for word in error.split() if _code(word)}

    def changes(self) -> dict[str, int]:
        return {name: part["changed"] for name, part in self.report.items()}

    def failures(self) -> list[str]:
        return [name for name, part in self.report.items() if part["failed"]]


def _code(word: str) -> bool:
    return word.startswith("GF") and word[2:].isdigit()


def run_deploy(
    deploy: str,
    hosts: Sequence[Host],
    *,
    per_host: Mapping[str, Mapping[str, Any]] | None = None,
    options: Sequence[str] = (),
    timeout: float = warm.HANG,
    on_line: Callable[[str], None] | None = None,
    groups: Sequence[str] = (),
    **data: Any,
) -> Outcome:
    """`pyinfra -y INVENTORY deploys/DEPLOY.py` on hosts of one sandbox (with --dry: no -y).

    `data` applies to all hosts, `per_host` to one host by name and overrides `data`. `on_line`
    is called with each output line while the deploy runs. `groups`: further ones of all hosts.
    """
    with TemporaryDirectory(prefix="gpufleet-test-") as folder:
        report = Path(folder, "report.json")
        command = deploy_command(deploy, hosts, Path(folder), per_host, data, options, groups)
        returncode, output = _run(command, {"GPUFLEET_REPORT": str(report)}, on_line, timeout)
        parts = json.loads(report.read_text())["hosts"] if report.exists() else {}
    return Outcome(returncode, output, parts)


def _run(
    command: list[str],
    variables: dict[str, str],
    on_line: Callable[[str], None] | None,
    timeout: float,
) -> tuple[int, str]:
    """Exit status and output; a command that takes longer than `timeout` seconds is killed."""
    lines = []
    reader, writer = os.pipe()
    run = warm.begin(command, ROOT, {**os.environ, **variables}, writer)
    os.close(writer)
    watchdog = Timer(timeout, os.killpg, (run.pid, signal.SIGKILL))
    watchdog.start()
    with open(reader, errors="replace") as output:
        for line in output:
            lines.append(line)
            if on_line:
                on_line(line)
    watchdog.cancel()
    return run.wait(), "".join(lines)


def deploy_command(
    deploy: str,
    hosts: Sequence[Host],
    folder: Path,
    per_host: Mapping[str, Mapping[str, Any]] | None = None,
    data: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> list[str]:
    """The command line; writes the inventory into `folder`."""
    wanted = {host.name: dict((per_host or {}).get(host.name, {})) for host in hosts}
    inventory = folder / "inventory.py"
    inventory.write_text(
        INVENTORY.format(
            wanted=json.dumps(wanted),
            data=json.dumps(data or {}),
            sandbox=hosts[0].sandbox,
            groups=tuple(groups),
        )
    )
    yes = [] if "--dry" in options else ["-y"]  # with -y, pyinfra does not preview the changes
    return [str(PYINFRA), *yes, *options, str(inventory), f"deploys/{deploy}.py"]
