"""Ends a run: its table, its report files, its exit status."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from gpufleet.core.console import result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import is_quiet
from gpufleet.core.stopped import Stopped
from gpufleet.run import findings
from gpufleet.run.invocation import Invocation
from gpufleet.run.report import HostReport, RunFacts, report_json, report_junit
from gpufleet.run.report_file import (
    REPORT_OPTIONS,
    prepare_file,
    print_lost,
    print_run_finding,
    write_file,
)
from gpufleet.run.report_table import show_report

SIGNALS = {
    signal.SIGINT: (ExitStatus.INTERRUPTED, "Interrupted."),
    signal.SIGTERM: (ExitStatus.TERMINATED, "Terminated."),
}
Renderer = Callable[[Sequence[HostReport], RunFacts], str]
Reports = Sequence[tuple[Path, Renderer]]
RENDERERS = (report_json, report_junit)  # of REPORT_OPTIONS


@dataclass(slots=True)
class ReportedRun:
    """A run: its command line and its end."""

    invocation: Invocation = field(default_factory=Invocation)
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    files: Reports = ()
    interrupted: ExitStatus | None = None  # set if a signal ended the run

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

        `completed`: pyinfra ran all operations; `names`: hosts to which the deploy does not apply,
        if the run has no other hosts.

        pyinfra has already set its exit status. If that is not specific enough, exit here.
        """
        status = self.interrupted or status
        asked = self.invocation
        if status is ExitStatus.NOTHING:
            chosen = asked.selection or "The inventory itself"
            print_run_finding(findings.NOTHING_MATCHES(selection=chosen, inventory=asked.inventory))
        elif names:
            deploys = " ".join(asked.deploys) or "The deploy"
            print_run_finding(findings.WRONG_DEPLOY(deploys=deploys, hosts=", ".join(names)))
        now = datetime.now(timezone.utc)
        run = RunFacts(asked.inventory, asked.deploys, self.started, now, dry, status, completed)
        written = [write_file(path, partial(render, hosts, run)) for path, render in self.files]
        silent = is_quiet() and all(host.is_silent for host in hosts)
        if hosts and not names and status is not ExitStatus.NOTHING and not silent:
            written.append(_show(hosts, dry=dry))
        unspecific = status in (ExitStatus.NOTHING, ExitStatus.USAGE) or self.interrupted
        if unspecific or not all(written):
            exit_process(status or ExitStatus.FAILED)


def _show(hosts: list[HostReport], *, dry: bool) -> bool:
    """Print the results; return False if standard output is full or closed."""
    try:
        if sys.stdout is None:
            raise OSError("it is closed")
        sys.stderr.flush()
        show_report(result_console(), hosts, dry=dry)
        sys.stdout.flush()
    except OSError as error:
        print_lost("standard output", error)
        return False
    return True


def requested_reports() -> Reports:
    """The files that environment variables name, without old reports. Raises Stopped."""
    found: dict[Path, Renderer] = {}
    for (variable, option, kind), rendered in zip(REPORT_OPTIONS, RENDERERS, strict=True):
        if path := os.environ.get(variable):
            file = prepare_file(path, f"{option} ({variable})", kind)
            if file in found:
                reason = "another report goes to this file"
                raise Stopped(findings.REPORT_PATH(option=option, path=path, why=reason))
            found[file] = rendered
    return list(found.items())


def exit_process(status: ExitStatus) -> None:
    """End the process within its last callback, in which Python accepts no other exit status."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the results are lost already
            stream.flush()
    os._exit(status)
