"""Run gpufleet and the lower bound, each in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Run, RunFailed, stamped, timed
from gpufleet.facts.script import gather_command
from gpufleet_sandbox.host import Host

PYINFRA = Path(sys.executable).with_name("pyinfra")
GPUFLEET = Path(sys.executable).with_name("gpufleet")
BUSY, FOREVER = 2, "while True: pass"
COMMAND = ("-y", "inventories/sandbox.py", "deploys/gpu_node.py")


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs that are compared; `env` names the sandbox, `work` takes their output."""

    env: dict[str, str]
    work: Path
    options: Sequence[str] = ()  # of gpu_node's, such as --data

    @property
    def words(self) -> list[str | Path]:
        """gpu_node's command."""
        return [PYINFRA, *COMMAND, *self.options]

    def gpu_node(self, changes: bool = False) -> Run:
        """Run deploys/gpu_node.py once. Raises RunFailed if a host fails, or changes although
        converged."""
        report = self.work / "report.json"
        run = timed(
            self.words,
            log=self.work / "gpu_node.log",
            env={**self.env, "GPUFLEET_REPORT": str(report)},
        )
        require(report_of(report), changes=changes)
        return run

    def gpu_node_by_operation(self) -> list[tuple[str, float]]:
        """gpu_node on bare hosts: its operations in order, with the seconds that each took."""
        return by_operation(stamped(self.words, self.env))

    def provision(self) -> None:
        """gpu_node on hosts some of which are bare."""
        timed(self.words, log=self.work / "provision.log", env=self.env)

    def status(self) -> Run:
        """Run `gpufleet status --drift`. Raises RunFailed if a host has drifted."""
        words: list[str | Path] = [GPUFLEET, "status", "inventories/sandbox.py", "--drift"]
        return timed(words, log=self.work / "status.log", env=self.env)

    def status_of_names(self, inventory: Path) -> Run:
        """Run `gpufleet status`, which reads a machine under each of its names."""
        words: list[str | Path] = [GPUFLEET, "status", inventory]
        return timed(words, log=self.work / "status.log", env=self.env)

    def doctor(self) -> Run:
        """Run `gpufleet doctor`. Raises RunFailed unless every verdict is PASS."""
        words: list[str | Path] = [GPUFLEET, "doctor", "inventories/sandbox.py"]
        return timed(words, log=self.work / "doctor.log", env=self.env)

    def busy_prolog(self) -> Run:
        """Run `gpufleet doctor @local --for prolog` beside BUSY processes for each processor."""
        count = BUSY * (os.cpu_count() or 1)
        busy = [subprocess.Popen([sys.executable, "-c", FOREVER]) for _ in range(count)]
        try:
            words: list[str | Path] = [GPUFLEET, "doctor", "@local", "--for", "prolog"]
            return timed(words, log=self.work / "prolog.log")
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def start(self) -> Run:
        """Measure the interpreter and pyinfra's imports with `pyinfra --version`."""
        return timed([PYINFRA, "--version"], log=self.work / "version.log")

    def floor(self, hosts: Sequence[Host], *, health: bool = False) -> Run:
        """One connection and the fact command on each host; with `health`, the doctor's command."""
        job = self.work / "floor.json"
        entries = [
            {
                "address": host.address,
                "user": host.state.user,
                "key": host.state.key,
                "known_hosts": host.state.known_hosts,
            }
            for host in hosts
        ]
        job.write_text(json.dumps({"command": gather_command(health=health), "hosts": entries}))
        words = [sys.executable, "-m", "benchmarks.floor"]
        return timed(words, log=self.work / "floor.log", stdin=job)


Report = dict[str, dict[str, dict[str, object]]]
STARTED = "--> Starting operation: "
BEFORE, AFTER = "start, connection and facts", "after the last operation"


def by_operation(lines: Sequence[tuple[float, str]]) -> list[tuple[str, float]]:
    """The operations of pyinfra and their seconds, from its output lines with their times."""
    marks = [(0.0, BEFORE)]
    for moment, line in lines:
        if STARTED in line:
            marks.append((moment, line.split(STARTED)[1].strip()))
        elif line.startswith("--> Results"):
            marks.append((moment, AFTER))
    ends = [moment for moment, _ in marks[1:]] + [lines[-1][0]]
    return [(name, end - moment) for (moment, name), end in zip(marks, ends, strict=True)]


def report_of(path: Path) -> Report:
    """The JSON report of a run."""
    found: Report = json.loads(path.read_text())
    return found


def require(report: Report, *, changes: bool) -> None:
    """RunFailed unless every host went well and changed, or did not, as expected."""
    for name, host in report["hosts"].items():
        if host["failed"] or bool(host["changed"]) != changes:
            wanted = "changes" if changes else "no changes"
            raise RunFailed(
                f"{name}: {wanted} and no failure expected, found "
                f"{host['changed']} changes, failed: {host['failed']}, {host['errors']}"
            )
