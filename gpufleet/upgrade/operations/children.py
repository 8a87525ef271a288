"""The steps of a run as processes: pyinfra with deploys/upgrade_driver.py on some hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.driver.findings.host import GPU_BUSY, KUBERNETES_GPU_PODS
from gpufleet.run.report import BAD
from gpufleet.upgrade import findings
from gpufleet.upgrade.operations.standby import Forked, Standby
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
        self._number = len(list(logs.glob("step-*.log")))
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
        with self._guard:
            self._number += 1
            log = self.logs / f"step-{self._number:04}-{step}.log"
        report = log.with_suffix(".json")
        status = self._run(self.words(hosts, options), log, report)
        if status is None:
            return dict.fromkeys(hosts, Result(False, "the run was interrupted", reached=False))
        if not report.is_file():
            shown = one_line(" ".join(log.read_text("utf-8", "replace").split())[-REASON:])
            resume = f"run `gpufleet upgrade resume --run {self.run}`"
            again = resume if self.run else "run `gpufleet upgrade` again"
            raise Stopped(
                findings.STEP_LOST(
                    step=step, status=status, output=shown or "nothing", log=log, again=again
                )
            )
        found = json.loads(report.read_text("utf-8"))
        parts = {name: found["hosts"].get(name) for name in hosts}
        whole = _carried_out(found, status)
        undone = findings.STEP_NOT_DONE(step=step, status=status, log=log)
        return {
            name: _result(part, None if (_view(part) if step == "look" else whole) else undone)
            for name, part in parts.items()
        }

    def _run(self, words: Sequence[str], log: Path, report: Path) -> int | None:
        """The exit status; None where nothing is begun any more."""
        environment = {**os.environ, "GPUFLEET_REPORT": str(report), "GPUFLEET_JUNIT": ""}
        with open(os.open(log, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as output:
            with self._guard:
                if self._over:
                    return None
                child = self._forked(words, environment, log) or subprocess.Popen(
                    words, cwd=self.cwd, env=environment, stdin=subprocess.DEVNULL,
                    stdout=output, stderr=subprocess.STDOUT,
                )  # fmt: skip
                self._running.add(child)
            try:
                return child.wait()
            finally:
                with self._guard:
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
            for child in self._running:
                child.terminate()
        if self._standby:
            self._standby.end()


def _carried_out(report: Mapping[str, Any], status: int) -> bool:
    """Whether a step was carried out to its end: by its report, and by the exit status. Without
    that "converged" says that nothing was found to do, and not that it was done."""
    done = report["completed"] and not report["dry"]
    return bool(done) and status == report["exit_status"]


def _view(part: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What the step `look` reported of a host."""
    view: Mapping[str, Any] = ((part or {}).get("plan") or {}).get("upgrade") or {}
    return view


def _result(part: Mapping[str, Any] | None, problem: Finding | None = None) -> Result:
    """`problem`: why the step is no success, whatever the host's part of the report says."""
    if part is None:
        away = findings.NOT_REPORTED()
        return Result(False, f"{away.code} {away.message}", reached=False)
    plan = _view(part)
    ok = part["status"] not in BAD and not part["errors"]  # those that _ignore_errors hides
    if ok and problem:
        return Result(False, one_line(f"{problem.code} {problem.message}"), plan)
    result = Result(ok, "" if ok else _reason(part), plan)
    return replace(result, busy=result.code in BUSY, reached=part["status"] != "not reached")


def _reason(part: Mapping[str, Any]) -> str:
    """The first blocker; of a failed step its output, which begins with the finding."""
    for finding in part.get("findings") or ():
        if finding["severity"] == "blocker" and finding["code"] != "GF012":
            return one_line(f"{finding['code']} {finding['message']}")[:REASON]
    errors = part.get("errors") or ["it gave no reason"]
    text = " ".join(line.strip(" |") for line in str(errors[0]).splitlines()[1:]) or errors[0]
    return one_line(text)[:REASON]
