"""`gpufleet plan` and `apply` in parts, side by side: one plan, one question, one report."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from gpufleet.cli.deploy import choose_targets, deploy_file, deploys_for
from gpufleet.cli.detailed import end_detailed
from gpufleet.cli.pyinfra_options import parse_options
from gpufleet.cli.question import Confirmation, has_operations, require_confirmation
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.inventory import CLUSTERS, CONTROL_PLANE, as_argument
from gpufleet.core.responses import run_within
from gpufleet.core.secrets import SUDO_PASSWORD
from gpufleet.core.visible import one_line
from gpufleet.run.invocation import Invocation
from gpufleet.run.lifecycle import Reports, requested_reports
from gpufleet.run.part import MAX_REASON_CHARS, HostPart
from gpufleet.run.whole_run import WholeRun, split_hosts
from gpufleet.verify.inventory import Target

SCHEDULER_SECONDS = 10  # seconds to wait for a Dask scheduler
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
    files = requested_reports()
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
    whole = WholeRun(asked, files, [target.name for target in targets], percent)
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
