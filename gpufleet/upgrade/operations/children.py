"""The steps of a run as processes: pyinfra with deploys/upgrade_driver.py on some hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.driver.findings.host import GPU_BUSY, KUBERNETES_GPU_PODS
from gpufleet.run.report import BAD
from gpufleet.upgrade.findings import hosts as findings
from gpufleet.upgrade.operations.output import end_of
from gpufleet.upgrade.operations.record_file import writing
from gpufleet.upgrade.operations.standby import Forked, Standby
from gpufleet.upgrade.operations.step_report import Part, read_part, read_report
from gpufleet.upgrade.subjects import Subject, data_of

Words = Callable[[Sequence[str], Sequence[str]], list[str]]  # hosts, options -> a command
REASON = 300  # characters
HARMLESS = ("look", "prepare", "take", "release")  # steps that leave the driver at work alone
BUSY = (findings.IN_USE.code, GPU_BUSY.code, KUBERNETES_GPU_PODS.code)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a step on one host."""

    ok: bool
    reason: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    busy: bool = False  # others use the GPUs: it may succeed later
    reached: bool = True  # else nothing was done on the host
    silent: bool = False  # its cluster does not answer: it may succeed later

    @property
    def code(self) -> str:
        """Of the finding that the reason begins with; "" without one."""
        found = re.match(r"GF\d{3}\b", self.reason)
        return found[0] if found else ""


class Children:
    """Starts processes; their output goes to files of the run."""

    def __init__(
        self,
        words: Words,
        cwd: str,
        logs: Path,
        run: str,
        subject: Subject = "driver",
        origin: str = "",
        standby: Standby | None = None,
    ) -> None:
        """`words`: makes pyinfra's command; `cwd`: the working directory of the run; `subject`:
        what it changes; `origin`: the run that it rolls back; `standby`: the process that
        forks for them."""
        self.words, self.cwd, self.logs = words, cwd, logs
        self.run, self.subject, self.origin = run, subject, origin
        self._number = _highest(logs)
        self._standby = standby
        self._over = False
        self._guard = threading.RLock()  # also of a signal in between
        self._running: set[subprocess.Popen[bytes] | Forked] = set()

    def step(
        self,
        step: str,
        hosts: Sequence[str],
        version: str = "",
        branch: str = "",
        reboot: str = "",
    ) -> dict[str, Result]:
        """Carry out a step on hosts. `version`: of what is changed; `branch`: of the driver;
        `reboot`: node_reboot, "" for that of the inventory. Raises Stopped where the process ends
        without a report.

        GPU work is no obstacle to the plan of a step that changes nothing under it, and always one
        to the others.
        """
        data = {"upgrade_step": step, "driver_allow_disruption": str(step in HARMLESS)}
        data |= {"upgrade_run": json.dumps(self.run)} if self.run else {}
        data |= {"upgrade_origin": json.dumps(self.origin)} if self.origin else {}
        data |= {"node_reboot": json.dumps(reboot)} if reboot else {}
        data |= data_of(self.subject, version, branch)
        options = [word for key, value in data.items() for word in ("--data", f"{key}={value}")]
        log, output = self._new_log(step)
        report = log.with_suffix(".json")
        report.unlink(missing_ok=True)  # no earlier one is taken for that of this step
        with open(output, "wb") as opened:
            status = self._run(self.words(hosts, options), log, opened, report)
        if status is None:
            return dict.fromkeys(hosts, Result(False, "the run was interrupted", reached=False))
        try:
            found = read_report(report)
        except (OSError, ValueError) as error:
            raise self._lost(step, status, log) from error
        look = step == "look"
        whole = found.carried_out(status) and not look
        undone = None if whole else findings.STEP_NOT_DONE(step=step, status=status, log=log)
        return {name: _result(found.hosts.get(name), undone, look=look) for name in hosts}

    def _new_log(self, step: str) -> tuple[Path, int]:
        """The file for the output of a step, which no earlier one has used. Raises Stopped."""
        while True:
            with self._guard:
                self._number += 1
                log = self.logs / f"step-{self._number:04}-{step}.log"
            with writing(log), suppress(FileExistsError):
                return log, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def _lost(self, step: str, status: int, log: Path) -> Stopped:
        """A process that left no report, or none that can be read."""
        shown = ""
        with suppress(FileNotFoundError), log.open("rb") as output:
            shown = end_of(output, REASON)
        resume = f"run `gpufleet upgrade resume --run {self.run}`"
        again = resume if self.run else "run `gpufleet upgrade` again"
        return Stopped(
            findings.STEP_LOST(
                step=step, status=status, output=shown or "nothing", log=log, again=again
            )
        )

    def _run(self, words: Sequence[str], log: Path, output: BinaryIO, report: Path) -> int | None:
        """The exit status; None where nothing is begun any more."""
        environment = {**os.environ, "GPUFLEET_REPORT": str(report), "GPUFLEET_JUNIT": ""}
        child: subprocess.Popen[bytes] | Forked | None = None
        if not self._over:
            child = self._forked(words, environment, log)  # waits: `end` must not wait for it
        with self._guard:
            if child is None and self._over:
                return None
            child = child or subprocess.Popen(
                words, cwd=self.cwd, env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
            self._running.add(child)
        if self._over:  # meanwhile
            self._end_running()
        try:
            return child.wait()
        finally:
            self._running.discard(child)

    def _forked(
        self, words: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> Forked | None:
        return self._standby.begin(words, self.cwd, environment, log) if self._standby else None

    def end(self) -> None:
        """End the processes, in order: SIGTERM of gpufleet's own runs lets steps on hosts end. No
        further one is begun."""
        self._over = True
        with self._guard:
            self._end_running()
        if self._standby:
            self._standby.end()

    def _end_running(self) -> None:
        """SIGTERM for each process, once."""
        with suppress(KeyError):
            while True:
                self._running.pop().terminate()


def _highest(logs: Path) -> int:
    """The number of the last step that has left a file."""
    found = (re.match(r"step-(\d{1,9})-", path.name) for path in logs.glob("step-*"))
    return max((int(each[1]) for each in found if each), default=0)


def _result(data: object, undone: Finding | None = None, *, look: bool = False) -> Result:
    """Of one host, by its part of the report; `undone`: why the step is no success, whatever the
    part says, except that a `look` is one if it saw the host. Of a part that cannot be read nothing
    is known: the host may have been changed."""
    away = findings.NOT_REPORTED()
    lost = Result(False, f"{away.code} {away.message}", reached=data is not None)
    if data is None:
        return lost
    try:
        part = read_part(data)
    except ValueError:
        return lost
    ok = part.status not in BAD and not part.errors  # those that _ignore_errors hides
    if ok and undone and not (look and "work" in part.view):
        return Result(False, one_line(f"{undone.code} {undone.message}"), part.view)
    result = Result(ok, "" if ok else _reason(part), part.view)
    return replace(result, busy=result.code in BUSY, reached=part.status != "not reached")


def _reason(part: Part) -> str:
    """The first blocker; of a failed step its output, which begins with the finding."""
    for finding in part.findings:
        if finding.severity == "blocker" and finding.code != "GF012":
            return one_line(f"{finding.code} {finding.message}")[:REASON]
    first = part.errors[0] if part.errors else "it gave no reason"
    text = " ".join(line.strip(" |") for line in first.splitlines()[1:]) or first
    return one_line(text)[:REASON]
