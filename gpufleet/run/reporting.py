"""Collects the results of each host during a pyinfra run and reports them at the end."""

from __future__ import annotations

import atexit
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import pyinfra
from gevent import getcurrent
from pyinfra.api import BaseStateCallback, Host, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_config, ctx_state

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import is_missing
from gpufleet.core.paths import shipped_path
from gpufleet.core.process import signal_running
from gpufleet.core.stopped import Stopped
from gpufleet.core.streams import prepare_streams
from gpufleet.run import findings
from gpufleet.run.connection import explain_unreached, hang_up, prepare_connections
from gpufleet.run.display import ENDED_EARLY, Display
from gpufleet.run.invocation import read_invocation
from gpufleet.run.lifecycle import SIGNALS, ReportedRun, exit_process, requested_reports
from gpufleet.run.near_misses import find_misspelt_keys
from gpufleet.run.pace import replace_run_ops
from gpufleet.run.report import BAD_STATUSES, HostReport
from gpufleet.run.report_file import print_error, print_run_finding
from gpufleet.run.step_results import add_operations

# takes groups, data and the keys of the command line
Problems = Callable[[Collection[str], Mapping[str, Any], Collection[str]], list[Finding]]


def begin_report(config: str, problems: Problems | None = None) -> None:
    """Begin the report if a deploy of gpufleet's, or one in deploys/ next to `config`, is run.

    `config`: the path of pyinfra's config.py. `problems`: finds errors in the settings of hosts
    that a deploy of gpufleet, or one with its name, cannot reach.

    Otherwise, a report begins with the first reachable host: a run without such a host, or whose
    limit matches no host, would have no report.
    """
    ours = {Path(config).resolve().parent / "deploys", shipped_path("deploys")}
    deploys = [Path(name).resolve() for name in read_invocation().deploys]
    if not any(ours.intersection(deploy.parents) for deploy in deploys):
        return
    RunReport.begun = RunReport.begin(ctx_state.get())
    names = {deploy.name for deploy in shipped_path("deploys").glob("*.py")}
    if problems and names.intersection(deploy.name for deploy in deploys):
        RunReport.begun.problems = problems


def _refuse(finding: Finding) -> None:
    """Exit with a usage error before the run starts."""
    if not pyinfra.is_cli:
        raise PyinfraError(f"{finding.code} {finding.message} {finding.remedy}")
    print_run_finding(finding)
    sys.exit(ExitStatus.USAGE)


class RunReport(ReportedRun, BaseStateCallback):
    """The run of one pyinfra state: its hosts, its progress and its end."""

    begun: ClassVar[RunReport | None] = None  # by config.py, before pyinfra has an inventory

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.hosts: dict[str, HostReport] = {}
        self.began: dict[str, float] = {}  # start of each host's current operation
        self.carried_out: Counter[str] = Counter()  # operations, by host
        self.touched: set[str] = set()  # hosts with a started operation
        self.problems: Problems = lambda groups, data, given: []
        self.plan_only = False
        self.left_out: set[str] = set()  # hosts that a deploy does not apply to
        self.display = Display(self)

    @classmethod
    def begin(cls, state: State) -> RunReport:
        """The report of the run that starts now. It is written when the process ends.

        A run with a wrong command line, or with a report that cannot be written, ends here, before
        it connects to a host.
        """
        if pyinfra.is_cli:
            prepare_streams()
        prepare_connections(ctx_config.get() if ctx_config.isset() else None)
        report = cls(state)
        report.invocation = asked = read_invocation()
        if is_missing(asked.inventory):
            _refuse(findings.INVENTORY_NOT_FOUND(path=asked.inventory, why="no such file"))
        if asked.mixes_preflight:
            _refuse(findings.PREFLIGHT_MIXED(deploys=" and ".join(asked.deploys)))
        try:
            report.files = requested_reports()
        except Stopped as stopped:
            _refuse(stopped.findings[0])
        atexit.register(report.close)
        if pyinfra.is_cli:
            replace_run_ops()
            for number in SIGNALS:
                signal.signal(number, report._interrupt)
        report.display.start(asked)
        return report

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Replace pyinfra's handler, which ends with exit status 0, and handle SIGTERM, too."""
        self.interrupted, word = SIGNALS[signal.Signals(number)]
        print_error(word)
        self.abandon()
        sys.unraisablehook = self._swallowed
        sys.exit(self.interrupted)

    def _swallowed(self, ignored: sys.UnraisableHookArgs) -> None:
        """End the run if a signal arrived in a finalizer, from which Python ignores exceptions."""
        if ignored.exc_type is not SystemExit or self.interrupted is None:
            sys.__unraisablehook__(ignored)
            return
        try:
            self.close()
        finally:
            exit_process(self.interrupted)

    @classmethod
    def of(cls, state: State) -> RunReport:
        """The report of this run, created and registered when the first host needs it."""
        for handler in state.callback_handlers:
            if isinstance(handler, cls):
                return handler
        report = RunReport.begun or cls.begin(state)
        RunReport.begun = None
        state.add_callback_handler(report)
        return report

    @classmethod
    def previews(cls, state: State) -> bool:
        """True if this run is only a preview."""
        return any(isinstance(found, cls) and found.plan_only for found in state.callback_handlers)

    def host(self, name: str) -> HostReport:
        """The part of one host."""
        return self.hosts.setdefault(name, HostReport(name))

    def was_examined(self, name: str) -> bool:
        """True if the host was already read and planned."""
        return name in self.hosts and self.hosts[name].examined

    def block(self, host: Host, problems: list[Finding]) -> None:
        """Stop one host before it is changed: it gets no plan; other hosts continue."""
        part = self.host(host.name)
        part.findings += [problem for problem in problems if problem not in part.findings]
        part.failed = True
        part.steps.clear()
        try:
            self.state.fail_hosts({self.state.inventory.get_host(host.name)})
        except PyinfraError as error:  # no hosts remain, or more failed than --fail-percent allows
            self.stop_early(error)

    def stop_early(self, error: PyinfraError) -> None:
        """End a run that cannot continue. The table explains why; pyinfra would not."""
        if not pyinfra.is_cli:
            raise error
        if "No hosts" not in str(error):  # the table explains this one
            print_error(ENDED_EARLY.format(why=error))
        self.abandon()
        sys.exit(self.interrupted or ExitStatus.FAILED)

    def abandon(self) -> None:
        """Stop waiting for commands on hosts, as pyinfra does at its end, and terminate helm."""
        if self.state.initialised:
            for greenlet in self.state.pool.greenlets - {getcurrent()}:
                greenlet.kill(block=False)
        signal_running(signal.SIGTERM)

    @property
    def _for_none(self) -> set[str]:
        """The hosts to which no deploy of this run applies."""
        return self.left_out - self.hosts.keys()

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        self.display.operation_start(op_hash)

    def operation_end(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        self.display.operation_end(op_hash)

    def operation_host_start(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str
    ) -> None:
        self.began[host.name] = time.monotonic()
        if op_hash in self.state.ops[host]:
            self.touched.add(host.name)

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        """Add the time of the operation, without time spent waiting for other hosts."""
        self.host(host.name).seconds += time.monotonic() - self.began.pop(host.name)
        self.carried_out[host.name] += 1

    def operation_host_error(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0
    ) -> None:
        self.operation_host_success(state, host, op_hash)

    @property
    def dry(self) -> bool:
        """True if the run was a preview, or was cancelled after its preview."""
        if self.invocation.dry or self.invocation.previews:
            return True
        taking_part = self._taking_part()
        if self.plan_only and not any(self.state.ops[host] for host in taking_part):
            return True  # a preview has no pyinfra operations
        went_well = not self.state.failed_hosts and not self.interrupted
        examined = all(self.host(host.name).examined for host in taking_part)
        return not self.state.is_executing and went_well and examined

    @property
    def completed(self) -> bool:
        """True if pyinfra ran the operations of all hosts and did not end early."""
        return not self.dry and self.state.current_stage is StateStage.Disconnect

    def gather(self) -> list[HostReport]:
        """Every host of the run, with the results of its operations and its status."""
        dry = self.dry
        for host in self._taking_part():
            part = self.host(host.name)
            part.failed = part.failed or host in self.state.failed_hosts
            part.findings += find_misspelt_keys(host)
            add_operations(part, host, begun=host.name in self.touched)
            self._judge(host, part, dry=dry)
            part.hide_accepted(host.data.dict())
            if dry:
                part.keep_to_plan()
            else:
                part.settle()
        return [self.hosts[host.name] for host in self.state.inventory if host.name in self.hosts]

    def _judge(self, host: Host, part: HostReport, *, dry: bool) -> None:
        """Set a host's status, and add a finding if no finding explains it yet."""
        if dry:
            part.changed = 0 if part.failed else len(part.steps)
        if part.failed and host not in self.state.activated_hosts:
            part.status = "not reached"
            part.findings.append(explain_unreached(host))
            with suppress(Exception):  # a run that reaches the host reports it
                given = host.inventory.get_override_data()
                part.findings += self.problems(host.groups, host.data.dict(), given)
        elif part.failed:
            part.status = "failed"
            if not part.errors and not any(found.blocks for found in part.findings):
                part.findings.append(findings.NO_ANSWER(host=part.name))
        elif host.name not in self.touched and (
            not part.examined or (self.state.ops[host] and not dry)
        ):
            part.status = "not reached"
            part.findings.append(findings.NOT_BEGUN(host=part.name))
        elif part.changed:
            part.status = "planned" if dry else "changed"
        else:
            part.status = "converged"
        part.failed = part.status in BAD_STATUSES

    def _taking_part(self) -> list[Host]:
        """The hosts that --limit leaves in the run, in the inventory's order."""
        if not self.state.initialised:
            return []
        limit = self.state.limit_hosts
        return [
            host
            for host in self.state.inventory
            if (limit is None or host in limit) and host.name not in self._for_none
        ]

    def close(self) -> None:
        """Release the terminal, print the table and write the reports."""
        self.display.end()
        if not self.state.initialised:
            self.finish([], ExitStatus.FAILED)
        elif self.state.limit_hosts == [] or not len(self.state.inventory):
            self.finish([], ExitStatus.NOTHING)
        elif self._for_none and not self._taking_part():
            self.finish([], ExitStatus.USAGE, names=sorted(self._for_none))
        else:
            hosts = self.gather()
            failed = any(host.status in BAD_STATUSES for host in hosts)
            status = ExitStatus.FAILED if failed else ExitStatus.CONVERGED
            self.finish(hosts, status, dry=self.dry, completed=self.completed)
        if self.state.initialised:
            hang_up(self.state.inventory)
