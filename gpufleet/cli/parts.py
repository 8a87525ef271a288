"""`gpufleet plan` and `apply` in parts, side by side: one plan, one question, one report."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from gpufleet.cli.deploy import choose_targets, deploy_file, deploys_for
from gpufleet.cli.detailed import end_detailed
from gpufleet.cli.pyinfra_options import parse_options
from gpufleet.cli.question import Confirmation, has_operations, require_confirmation
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.inventory import CLUSTERS, CONTROL_PLANE, as_argument
from gpufleet.core.live import LiveProgress
from gpufleet.core.names import count_noun
from gpufleet.core.process import signal_running
from gpufleet.core.progress import format_elapsed
from gpufleet.core.responses import run_within
from gpufleet.core.secrets import SUDO_PASSWORD
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.run import findings
from gpufleet.run.invocation import Invocation
from gpufleet.run.lifecycle import SIGNALS, ReportedRun, Reports, exit_process, requested_reports
from gpufleet.run.part import (
    MAX_REASON_CHARS,
    HostPart,
    ProcessOutcome,
    not_reached,
    part_hosts,
    run_part,
)
from gpufleet.run.report import BAD_STATUSES, HostReport
from gpufleet.run.report_file import print_error, print_run_finding
from gpufleet.verify.inventory import Target

MAX_PART_HOSTS = 100  # hosts that a lost part affects; --fail-percent counts in these steps
SCHEDULER_SECONDS = 10  # seconds to wait for a Dask scheduler
PARTS_POLL_SECONDS = 0.5  # seconds between two checks for parts that ended
OUTPUT = "the output of each part is in a file of its own"
BEFORE_DASHES = "use it before `--`"
SECRET_OPTION_REASON = "set it in the inventory, or every worker shows it in its list of processes"
REFUSED = {
    "--limit": BEFORE_DASHES,
    "--exclude": BEFORE_DASHES,
    "--chdir": "start gpufleet in that folder",
    "--serial": "parts run at the same time",
    **dict.fromkeys(("-v", "--diff", "--json", "--debug", "--debug-all"), OUTPUT),
    **dict.fromkeys(("--debug-facts", "--debug-operations"), OUTPUT),
    "--same-sudo-password": "use --ask-sudo-password before `--`",
    "--ssh-password-prompt": "a part cannot ask",
    **dict.fromkeys(("--ssh-password", "--ssh-key-password"), SECRET_OPTION_REASON),
}


def split_hosts(hosts: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """Split hosts into parts of nearly the same size: the same number of parts for each of `count`
    workers, and at most MAX_PART_HOSTS hosts in a part."""
    rounds = -(-len(hosts) // (count * MAX_PART_HOSTS))
    parts = min(count * rounds, len(hosts))
    ends = [len(hosts) * place // parts for place in range(parts + 1)] if parts else []
    return [tuple(hosts[first:last]) for first, last in pairwise(ends)]


class Whole(ReportedRun):
    """A run in parts: the hosts that are done so far, and the parts that still run."""

    def __init__(
        self, asked: Invocation, files: Reports, names: Sequence[str], percent: int | None
    ) -> None:
        super().__init__(asked, files=files)
        self.names, self.percent = names, percent
        self.hosts: dict[str, HostReport] = {}
        self.completed = True  # True if all parts so far completed
        self.logs: Path | None = None  # folder with the output of parts with a failed host
        self._began, self._running = time.monotonic(), 0

    @property
    def failed(self) -> int:
        return sum(host.status in BAD_STATUSES for host in self.hosts.values())

    @property
    def is_over_budget(self) -> bool:
        return self.percent is not None and self.failed * 100 > self.percent * len(self.names)

    def run(self, parts: Sequence[HostPart], executor: Executor, count: int) -> None:
        """Run parts, `count` at a time; no part begins after an interrupt or over budget."""
        waiting = list(reversed(parts))
        running: dict[Future[ProcessOutcome], HostPart] = {}
        while running or (waiting and not self.interrupted and not self.is_over_budget):
            while waiting and len(running) < count and not self.interrupted:
                part = waiting.pop()
                running[executor.submit(run_part, part)] = part
            self._running = len(running)
            for future in wait(running, PARTS_POLL_SECONDS, FIRST_COMPLETED).done:
                self._take(running.pop(future), future)
            if self.is_over_budget:
                count = 0

    def _take(self, part: HostPart, future: Future[ProcessOutcome]) -> None:
        try:
            outcome = future.result()
        except Exception as error:  # noqa: BLE001 a boundary: a part whose worker is lost
            outcome = ProcessOutcome(None, "", f"{type(error).__name__}: {error}")
        hosts, completed = part_hosts(part, outcome)
        self.hosts |= {host.name: host for host in hosts}
        self.completed = self.completed and completed
        if any(host.status in BAD_STATUSES for host in hosts):
            self.logs = self.logs or Path(tempfile.mkdtemp(prefix="gpufleet-parts-"))
            name = f"{part.hosts[0].replace('/', '-')}.log"
            (self.logs / name).write_text(outcome.output, "utf-8", "backslashreplace")

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress. The first signal ends the parts of this machine in order; the second one
        ends everything at once."""
        progress = LiveProgress(lambda width, height: [self._line()[:width]], self._line)
        before = {number: signal.signal(number, self._interrupt) for number in SIGNALS}
        progress.start()
        try:
            yield
        finally:
            progress.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _line(self) -> str:
        parts, hosts = count_noun(self._running, "part"), count_noun(len(self.names), "host")
        spent, done = format_elapsed(time.monotonic() - self._began), len(self.hosts) - self.failed
        return f"Running {parts} of {hosts}, {spent}: {done} done, {self.failed} failed"

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        status, word = SIGNALS[signal.Signals(number)]
        if self.interrupted:
            signal_running(signal.SIGKILL)
            print_error("Ended at once. What the hosts at work have is not known: run again.")
            exit_process(status)
        self.interrupted = status
        signal_running(signal.SIGTERM)
        print_error(f"{word} Parts of this machine end in order. Ctrl+C ends all at once.")

    def report(self, *, dry: bool) -> ExitStatus:
        """Print and write the report of the whole run."""
        left = [name for name in self.names if name not in self.hosts]
        if left and self.is_over_budget and not self.interrupted:
            hosts = count_noun(len(self.names), "host")
            over = findings.OVER_BUDGET(failed=self.failed, hosts=hosts, percent=self.percent)
            print_run_finding(over)
        self.hosts |= {name: not_reached(name, findings.NOT_BEGUN(host=name)) for name in left}
        if self.logs:
            print_error(f"Output of the parts in which a host failed: {self.logs}")
        completed = self.completed and not (dry or left or self.interrupted)
        well = not self.failed and (dry or completed)
        status = ExitStatus.CONVERGED if well else ExitStatus.FAILED
        found = [self.hosts[name] for name in self.names]
        self.finish(found, status, dry=dry, completed=completed)
        return self.interrupted or status


@dataclass(frozen=True, slots=True)
class PartsRequest:
    """A requested run. `workers`: parts at a time. None means one, or as many as the Dask cluster
    at `scheduler` has threads."""

    inventory: str
    limit: Sequence[str]
    options: tuple[str, ...]
    workers: int | None = None
    scheduler: str = ""

    @property
    def given(self) -> dict[str, Any]:
        return parse_options(self.options)


def run_in_parts(
    request: PartsRequest, command: str, ask: Confirmation | None = None, *, detailed: bool = False
) -> NoReturn:
    """Run `gpufleet plan` or `apply` in parts; ends this process with the status of the whole.

    `detailed`: the status says whether a plan has changes."""
    dry = command == "plan" or "--dry" in request.given
    ask = None if dry else ask
    require_confirmation(ask is None, request.options)
    for option, why in REFUSED.items():
        if option in request.given:
            raise click.UsageError(f"{option} is not possible with --workers: {why}.")
    if request.scheduler and os.environ.get(SUDO_PASSWORD):
        raise click.UsageError(
            "--ask-sudo-password is not possible with --scheduler: workers do not get it. Set "
            "_sudo_password in the inventory, from a vault that they can read."
        )
    every, targets = choose_targets(request.inventory, request.limit)
    if any(CONTROL_PLANE in target.groups for target in every):
        raise click.UsageError(
            f"--workers is not possible: what is in {CONTROL_PLANE} must join in one run."
        )
    try:
        files = requested_reports()
    except Stopped as stopped:
        print_run_finding(stopped.findings[0])
        sys.exit(ExitStatus.USAGE)
    if ask:
        status, planned = _run(request, "plan", targets)
        if status not in (ExitStatus.CONVERGED, ExitStatus.FAILED):  # failed: some host is blocked
            sys.exit(status)
        own = any(has_operations(deploy_file(name)) for name in deploys_for(targets))
        ask.put(planned, own=own)
    status, changes = _run(request, command, targets, files, dry=dry)
    if detailed:
        end_detailed(status, changes)
    sys.exit(status)


def _run(
    request: PartsRequest,
    command: str,
    targets: Sequence[Target],
    files: Reports = (),
    dry: bool = True,
) -> tuple[ExitStatus, int]:
    """The status, and the number of hosts that it changed or would change. Hosts run in parts.
    Clusters and hosts without SSH then run here in one part: only this machine can reach them."""
    percent = request.given.get("--fail-percent", (None,))[-1]
    sure = ["--yes"] if command == "apply" else []
    words = [command, *sure, as_argument(request.inventory), "--"]
    # within a part, any number of hosts may fail: failures are counted here for the whole run
    words += [*request.options, *([] if percent is None else ["--fail-percent", "100"])]
    apart = tuple(
        target.name
        for target in targets
        if CLUSTERS in target.groups or re.match("@(?!ssh/)", target.name)
    )
    hosts, folder = [each.name for each in targets if each.name not in apart], str(Path.cwd())
    deploys = ["preflight"] if command == "plan" else deploys_for(targets)
    asked = Invocation(request.inventory, tuple(str(deploy_file(name)) for name in deploys))
    whole = Whole(asked, files, [target.name for target in targets], percent)
    with _workers(request) as (executor, count), ThreadPoolExecutor(1) as here, whole.shown():
        split = [HostPart(names, tuple(words), folder) for names in split_hosts(hosts, count)]
        whole.run(split, executor, count)
        whole.run([HostPart(apart, tuple(words), folder)] if apart else [], here, 1)
    return whole.report(dry=dry), sum(host.changed > 0 for host in whole.hosts.values())


@contextmanager
def _workers(request: PartsRequest) -> Iterator[tuple[Executor, int]]:
    """The executor of parts, and the number of parts at a time. Raises click.UsageError."""
    if not request.scheduler:
        count = request.workers or 1
        with ThreadPoolExecutor(count) as pool:
            yield pool, count
        return
    address = one_line(request.scheduler)
    try:
        from distributed import Client
    except ImportError as error:
        why = "install gpufleet with its extra `scale`, here and on the workers"
        raise click.UsageError(f"--scheduler needs Dask: {why}.") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # hide tracebacks of the start
    try:  # Client's own timeout covers only the connection, not a silent peer
        client = run_within(
            SCHEDULER_SECONDS,
            lambda _: Client(request.scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False),
        )
        count = request.workers or sum(client.ncores().values())
        if not client.ncores():
            raise ValueError("it has no workers")
    except Exception as error:  # any program may listen at that address
        why = one_line(str(error))[:MAX_REASON_CHARS] or type(error).__name__
        raise click.UsageError(
            f"No scheduler at {address}: {why.rstrip('.')}. Start one with `dask scheduler`, or "
            "correct the address, such as tcp://HOST:8786."
        ) from error
    try:
        yield client.get_executor(pure=False), count
    finally:
        with suppress(Exception):  # the scheduler hangs or has ended
            client.close(SCHEDULER_SECONDS)
