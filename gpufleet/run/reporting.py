"""Collects the results of each host during a pyinfra run and reports them at the end."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import pyinfra
from gevent import getcurrent
from pyinfra.api import BaseStateCallback, Host, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.state import StateStage

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.process import signal_running
from gpufleet.core.redact import redacted_lines
from gpufleet.core.streams import prepare_streams
from gpufleet.core.visible import barred, one_line
from gpufleet.run import findings
from gpufleet.run.connection import hang_up, misspelt, quiet_paramiko, stop_alone, unreached
from gpufleet.run.display import Display
from gpufleet.run.lifecycle import Run
from gpufleet.run.report import BAD, HostReport

Problems = Callable[[Collection[str], Mapping[str, Any]], list[Finding]]  # of groups and data
ERROR_LINES = 12  # of a failed operation's output that the report repeats


def own_line(host: str) -> re.Pattern[str]:
    """How the explanation of a failed step begins, as shell.explain writes it."""
    return re.compile(rf"GF\d{{3}} {re.escape(one_line(host))}: ")


class RunReport(BaseStateCallback):
    """The report of one run; one per pyinfra state."""

    started: ClassVar[RunReport | None] = None  # by config.py, before pyinfra has an inventory

    def __init__(self, state: State, run: Run | None = None) -> None:
        self.state = state
        self.run = run or Run()
        self.hosts: dict[str, HostReport] = {}
        self.began: dict[str, float] = {}
        self.touched: set[str] = set()  # hosts of which an operation was started
        self.problems: Problems = lambda groups, data: []
        self.plan_only = False
        self.left_out: set[str] = set()
        self.display: Display | None = None

    @classmethod
    def begin(cls, state: State) -> RunReport:
        """The report of the run that starts now; it is written when the process ends.

        A run whose report cannot be written ends here, before it connects to a host.
        """
        if pyinfra.is_cli:
            prepare_streams()
        quiet_paramiko()
        stop_alone()
        report = cls(state, Run.start())
        report.run.at_end(report.close, report.abandon)
        report.display = Display.begin(state, report.run.invocation, report.was_examined)
        return report

    @classmethod
    def of(cls, state: State) -> RunReport:
        """The report of this run, created and registered when the first host needs it."""
        for handler in state.callback_handlers:
            if isinstance(handler, cls):
                return handler
        report = RunReport.started or cls.begin(state)
        RunReport.started = None
        state.add_callback_handler(report)
        if report.display:
            state.add_callback_handler(report.display)
        return report

    @classmethod
    def previews(cls, state: State) -> bool:
        """Whether this run only previews."""
        return any(isinstance(found, cls) and found.plan_only for found in state.callback_handlers)

    def host(self, name: str) -> HostReport:
        """The part of one host."""
        if name not in self.hosts:
            self.hosts[name] = HostReport(name)
        return self.hosts[name]

    def was_examined(self, name: str) -> bool:
        """Whether a host was read and planned by now."""
        return name in self.hosts and self.hosts[name].examined

    def block(self, host: Host, problems: list[Finding]) -> None:
        """Stop one host before it is changed: nothing is planned; other hosts continue."""
        part = self.host(host.name)
        part.findings += [problem for problem in problems if problem not in part.findings]
        part.failed = True
        part.steps.clear()
        try:
            self.state.fail_hosts({self.state.inventory.get_host(host.name)})
        except PyinfraError as error:  # no hosts remain, or more failed than --fail-percent allows
            self.run.stop_early(error)

    def abandon(self) -> None:
        """Stop waiting for commands that are running on hosts; end helm in order."""
        if self.state.initialised:
            for greenlet in self.state.pool.greenlets - {getcurrent()}:
                greenlet.kill(block=False)
        signal_running(signal.SIGTERM)

    def leave_out(self, name: str) -> None:
        """Leave out of the report a host that the deploy does not apply to, unless another deploy
        of the run does."""
        self.left_out.add(name)

    @property
    def _for_none(self) -> set[str]:
        """The hosts that no deploy of this run is for."""
        return self.left_out - self.hosts.keys()

    def operation_host_start(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str
    ) -> None:
        self.began[host.name] = time.monotonic()
        if op_hash in self.state.ops[host]:
            self.touched.add(host.name)

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        self._count(host.name)

    def operation_host_error(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0
    ) -> None:
        self._count(host.name)

    def _count(self, name: str) -> None:
        """Add the time of one operation; waiting for other hosts in between does not count."""
        self.host(name).seconds += time.monotonic() - self.began.pop(name)

    @property
    def dry(self) -> bool:
        """Whether the run was a preview, or was cancelled after its preview."""
        if self.run.invocation.dry or self.run.invocation.previews:
            return True
        taking_part = self._taking_part()
        if self.plan_only and not any(self.state.ops[host] for host in taking_part):
            return True  # a preview has no operations of pyinfra's
        went_well = not self.state.failed_hosts and not self.run.interrupted
        examined = all(self.host(host.name).examined for host in taking_part)
        return not self.state.is_executing and went_well and examined

    @property
    def completed(self) -> bool:
        """Whether pyinfra's command carried out the operations of all hosts: it passes this stage
        neither in a preview nor where it ends early, whatever ended it."""
        return not self.dry and self.state.current_stage is StateStage.Disconnect

    def gather(self) -> list[HostReport]:
        """Every host of the run, with the results of its operations and its status."""
        dry = self.dry
        for host in self._taking_part():
            part = self.host(host.name)
            part.failed = part.failed or host in self.state.failed_hosts
            part.findings += misspelt(host)
            self._add_operations(host, part)
            self._judge(host, part, dry=dry)
            if dry:
                part.keep_to_plan()
            else:
                part.settle()
        return sorted(self.hosts.values(), key=lambda part: self._position(part.name))

    def _judge(self, host: Host, part: HostReport, *, dry: bool) -> None:
        """Set a host's status, and add a finding where none explains it yet."""
        if dry:
            part.changed = 0 if part.failed else len(part.steps)
        if part.failed and host not in self.state.activated_hosts:
            part.status = "not reached"
            part.findings.append(unreached(host))
            part.findings += self._unread_settings(host)
        elif part.failed:
            part.status = "failed"
            if not part.errors and not any(found.blocks for found in part.findings):
                part.findings.append(findings.NO_ANSWER(host=part.name))
        elif self._awaits_its_turn(host, part, dry=dry):
            part.status = "not reached"
            part.findings.append(findings.NOT_BEGUN(host=part.name))
        elif part.changed:
            part.status = "planned" if dry else "changed"
        else:
            part.status = "converged"
        part.failed = part.status in BAD

    def _unread_settings(self, host: Host) -> list[Finding]:
        try:
            return self.problems(host.groups, host.data.dict())
        except Exception:  # noqa: BLE001 a boundary: the run that reaches the host says so
            return []

    def _awaits_its_turn(self, host: Host, part: HostReport, *, dry: bool) -> bool:
        """Whether the run ended before it started its work on a host."""
        if host.name in self.touched:
            return False
        if not part.examined:
            return True
        return bool(self.state.ops[host]) and not dry

    def _add_operations(self, host: Host, part: HostReport) -> None:
        """Count changes; report what failed, or what the end of the run interrupted."""
        for op_hash, data in self.state.ops[host].items():
            meta = data.operation_meta
            name = ", ".join(self.state.get_op_meta(op_hash).names)
            if not meta.is_complete():
                if host.name in self.touched and not part.failed:
                    part.failed = True
                    part.findings.append(findings.CUT_SHORT(operation=name))
            elif meta.did_change():
                part.changed += 1
            elif meta.did_error():
                lines = [line for line in meta.stderr_lines if line.strip()]
                shown = redacted_lines(lines[:ERROR_LINES])
                part.errors.append("\n".join([one_line(name), *barred(shown)]))
                known = any(found.blocks for found in part.findings)
                if not known and not any(map(own_line(host.name).match, shown)):
                    last = next((line for line in reversed(shown) if line.strip()), "no message")
                    part.findings.append(
                        findings.STEP_FAILED(operation=name, said=last.strip().rstrip("."))
                    )

    def _taking_part(self) -> list[Host]:
        """The hosts that --limit left in the run, in the inventory's order."""
        if not self.state.initialised:
            return []
        limit = self.state.limit_hosts
        return [
            host
            for host in self.state.inventory
            if (limit is None or host in limit) and host.name not in self._for_none
        ]

    def _position(self, name: str) -> int:
        return [host.name for host in self.state.inventory].index(name)

    def end_display(self) -> None:
        """Give the terminal back."""
        if self.display:
            self.display.end()

    def close(self) -> None:
        """Print the table to standard output and write the JSON file of GPUFLEET_REPORT."""
        self.end_display()
        if not self.state.initialised:
            self.run.finish([], ExitStatus.FAILED)
        elif self._selects_none():
            self.run.finish([], ExitStatus.NOTHING)
        elif self._for_none and not self._taking_part():
            self.run.finish([], ExitStatus.USAGE, names=sorted(self._for_none))
        else:
            hosts = self.gather()
            failed = any(host.status in BAD for host in hosts)
            status = ExitStatus.FAILED if failed else ExitStatus.CONVERGED
            self.run.finish(hosts, status, dry=self.dry, completed=self.completed)
        if self.state.initialised:
            hang_up(self.state.inventory)

    def _selects_none(self) -> bool:
        limit = self.state.limit_hosts
        return not (self.state.inventory if limit is None else limit)
