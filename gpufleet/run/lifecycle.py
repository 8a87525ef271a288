"""One run of pyinfra: when it started, where its report goes, its exit status."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType

import pyinfra
from pyinfra.api.exceptions import PyinfraError

from gpufleet.core.console import result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.run import findings
from gpufleet.run.invocation import Invocation, read_invocation
from gpufleet.run.junit import as_junit
from gpufleet.run.report import HostReport, RunFacts, as_json
from gpufleet.run.report_file import JUNIT, REPORT, ReportFile, is_junit, is_report
from gpufleet.run.report_table import show

SIGNALS = {
    signal.SIGINT: (ExitStatus.INTERRUPTED, "Interrupted."),
    signal.SIGTERM: (ExitStatus.TERMINATED, "Terminated."),
}
AGAIN = 0.05  # seconds
Renderer = Callable[[Sequence[HostReport], RunFacts], str]
# variable and option that name the file -> whether an older file may go, what that is, the text of
# a new one
REPORTS: tuple[tuple[str, str, Callable[[bytes], bool], str, Renderer], ...] = (
    ("GPUFLEET_REPORT", "--json", is_report, REPORT, as_json),
    ("GPUFLEET_JUNIT", "--junit", is_junit, JUNIT, as_junit),
)


@dataclass(slots=True)
class Run:
    """The run of this process."""

    invocation: Invocation = field(default_factory=Invocation)
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    files: Sequence[tuple[ReportFile, Renderer]] = ()
    interrupted: ExitStatus | None = None  # how, where a signal ended the run
    abandon: Callable[[], None] = lambda: None

    @classmethod
    def start(cls) -> Run:
        """A run with a valid command line and a writable report file; else exit."""
        run = cls(read_invocation())
        if run.invocation.lacks_inventory:
            refuse(findings.NO_INVENTORY(path=run.invocation.inventory))
        if run.invocation.mixes_preflight:
            refuse(findings.PREFLIGHT_MIXED(deploys=" and ".join(run.invocation.deploys)))
        try:
            run.files = requested_reports()
        except Stopped as stopped:
            refuse(stopped.findings[0])
        return run

    def at_end(self, close: Callable[[], None], abandon: Callable[[], None]) -> None:
        """Call `close` when the process ends; before that `abandon` where it ends early.

        pyinfra's last step waits for running operations unless they are abandoned.
        """
        atexit.register(close)
        self.abandon = abandon
        if pyinfra.is_cli:
            for number in SIGNALS:
                signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """pyinfra's own handler ends with exit status 0, and it has none for SIGTERM."""
        self.interrupted, word = SIGNALS[signal.Signals(number)]
        print_error(word)
        self.abandon()
        sys.unraisablehook = self._swallowed
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(self.interrupted))
        sys.exit(self.interrupted)

    def _swallowed(self, ignored: sys.UnraisableHookArgs) -> None:
        """Python ignores what is raised in a finalizer, where a signal may arrive: exit later."""
        if ignored.exc_type is SystemExit:
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            sys.__unraisablehook__(ignored)

    def stop_early(self, error: PyinfraError) -> None:
        """End a run that cannot continue: the table says why, pyinfra would not."""
        if not pyinfra.is_cli:
            raise error
        what = "no hosts remain" if "No hosts" in str(error) else str(error)
        print_error(f"Run aborted: {what}. See the table below for the reason.")
        self.abandon()
        sys.exit(self.interrupted or ExitStatus.FAILED)

    def finish(
        self,
        hosts: list[HostReport],
        status: ExitStatus,
        *,
        dry: bool = False,
        completed: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        """Show and write the report of a run that ends with `status`, or was interrupted.

        `completed`: pyinfra carried out all operations; `names`: of hosts that the deploy is not
        for, where there are no others.

        pyinfra has set its exit status by now: where it is not specific enough, exit here.
        """
        status = self.interrupted or status
        if status is ExitStatus.NOTHING:
            say(self._nothing())
        elif names:
            asked = " ".join(self.invocation.deploys) or "The deploy"
            say(findings.WRONG_DEPLOY(deploys=asked, hosts=", ".join(names)))
        written = self._write(hosts, status, dry=dry, completed=completed)
        if hosts and not names and status is not ExitStatus.NOTHING:
            written = self._shown(hosts, dry=dry) and written
        unspecific = status in (ExitStatus.NOTHING, ExitStatus.USAGE) or self.interrupted
        if unspecific or not written:
            end(status or ExitStatus.FAILED)

    def _shown(self, hosts: list[HostReport], *, dry: bool) -> bool:
        """Print the results; False where standard output is full, or nobody reads it."""
        try:
            if sys.stdout is None:
                raise OSError("it is closed")
            sys.stderr.flush()
            show(result_console(), hosts, dry=dry)
            sys.stdout.flush()
        except OSError as error:
            say(findings.RESULTS_LOST(why=_why(error)))
            return False
        return True

    def _nothing(self) -> Finding:
        asked = self.invocation
        return findings.NOTHING_MATCHES(
            selection=asked.selection or "The inventory itself", inventory=asked.inventory
        )

    def _write(
        self, hosts: list[HostReport], status: ExitStatus, *, dry: bool, completed: bool
    ) -> bool:
        """Whether the reports were written that were requested."""
        asked = self.invocation
        now = datetime.now(timezone.utc)
        words = (asked.inventory, asked.deploys)
        facts = RunFacts(*words, self.started, now, dry, status, completed)
        lost = False
        for file, rendered in self.files:
            try:
                file.write(rendered(hosts, facts))
            except (OSError, ValueError) as error:
                say(findings.REPORT_LOST(path=file.path, why=_why(error)))
                lost = True
        return not lost


def requested_reports() -> list[tuple[ReportFile, Renderer]]:
    """The files that the environment names, without old reports. Raises Stopped."""
    found: dict[Path, tuple[ReportFile, Renderer]] = {}
    for variable, option, ours, kind, rendered in REPORTS:
        if not (path := os.environ.get(variable)):
            continue
        file = ReportFile(Path(path), ours, kind)
        try:
            if file.path in found:
                raise FileExistsError("it is to have another report")
            file.prepare()
        except OSError as error:
            refused = findings.REPORT_PATH(
                variable=variable, option=option, path=path, why=_why(error)
            )
            raise Stopped(refused) from error
        found[file.path] = file, rendered
    return list(found.values())


def refuse(finding: Finding) -> None:
    """Exit before the run starts: usage error."""
    if not pyinfra.is_cli:
        raise PyinfraError(f"{finding.code} {finding.message} {finding.remedy}")
    say(finding)
    sys.exit(ExitStatus.USAGE)


def say(finding: Finding) -> None:
    """Print a finding about the run itself."""
    print_error(f"{finding.code} {finding.message}\n  {finding.remedy}")


def print_error(text: str) -> None:
    """Print to standard error, where there still is one: a run that is to end ends without."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def end(status: ExitStatus) -> None:
    """End the process from within its last callback, where Python takes no other status."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the results are lost already
            stream.flush()
    os._exit(status)


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
