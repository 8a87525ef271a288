"""A run on several workers from its question to its end: one plan, one report, one exit status."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import NoReturn

import click

from gpufleet.cli.deploy import Deploys, Place, Question, deploy_file
from gpufleet.cli.scheduled import Scheduled
from gpufleet.cli.shard_request import Request, is_apart
from gpufleet.cli.sharded import Sharded
from gpufleet.cli.workers import Local, Workers
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.names import counted
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import each_line
from gpufleet.run import findings
from gpufleet.run.invocation import Invocation
from gpufleet.run.lifecycle import Renderer, Run, print_error, requested_reports, say
from gpufleet.run.report import BAD
from gpufleet.run.report_file import ReportFile
from gpufleet.run.shards import Shard, cut, in_order, not_begun

Reports = Sequence[tuple[ReportFile, Renderer]]


def run_sharded(
    request: Request, deploys: Deploys, ask: Question | None, *, dry: bool = False
) -> NoReturn:
    """Run deploys on several workers; ends this process with the status of the whole.

    `ask`: what is confirmed first, below the plan that its deploys show; `dry`: pyinfra's options
    are those of a preview.
    """
    try:
        files = requested_reports()
    except Stopped as stopped:
        say(stopped.findings[0])
        sys.exit(ExitStatus.USAGE)
    if ask:
        shown = _whole(request, lambda _: list(ask.deploys), ask.options)
        status = _show(shown, request, ask.deploys, dry=True)
        if status not in (ExitStatus.CONVERGED, ExitStatus.FAILED):  # failed: some host is blocked
            sys.exit(status)
        click.confirm(ask.text, abort=True, err=True)
    done = _whole(request, deploys)
    names = deploys(list(request.targets))
    dry = dry or list(names) == ["preflight"]
    sys.exit(_show(done, request, names, dry=dry, files=files))


def opened(place: Place) -> Workers:
    """Raises click.UsageError."""
    if place.scheduler:
        return Scheduled(place.scheduler, place.workers)
    return Local(place.workers or 1)


def _whole(request: Request, deploys: Deploys, options: Sequence[str] = ()) -> Sharded:
    """Hosts in parts; then, here and in one, what is apart. What the workers print is kept where
    a host failed, or this process does."""
    request = replace(request, options=(*request.options, *options))
    apart = [each for each in request.targets if is_apart(each)]
    hosts = [each for each in request.targets if not is_apart(each)]
    workers, here = opened(request.place), Local(1)
    logs = _folder_for_logs()
    run = Sharded(len(request.targets), request.percent, logs)
    went_well = False
    try:
        with run.shown():
            try:
                shards = cut([each.name for each in hosts], workers.count)
                run.on(workers, shards, lambda shard: request.order(shard, deploys(hosts), logs))
                shards = [Shard(0, tuple(each.name for each in apart))] if apart else []
                run.on(here, shards, lambda shard: request.order(shard, deploys(apart), logs))
            finally:
                workers.close()
                here.close()
        went_well = run.did_nothing or not run.failed
    finally:
        if went_well:
            rmtree(logs, ignore_errors=True)
        else:
            print_error(f"Output of the workers: {logs}")
    return run


def _folder_for_logs() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="gpufleet-workers-"))
    except OSError as error:
        why = error.strerror or error
        raise click.ClickException(f"No folder for the output of the workers: {why}") from error


def _show(
    run: Sharded,
    request: Request,
    deploys: Sequence[str],
    *,
    dry: bool,
    files: Reports = (),
) -> ExitStatus:
    """Print the report of the whole, and write it; returns the exit status."""
    if run.did_nothing and run.refused and run.refused.refused:
        print_error(each_line(run.refused.output))
        return run.refused.refused
    if run.left and run.is_over_budget and run.interrupted is None:
        total = counted(run.total, "host")
        say(findings.OVER_BUDGET(failed=run.failed, hosts=total, percent=request.percent))
    parts = run.parts | {part.name: part for part in not_begun(run.left)}
    hosts = in_order(parts, (each.name for each in request.targets))
    failed = sum(part.status in BAD for part in hosts)
    cut_short = run.left or run.interrupted or not run.completed or failed == len(hosts)
    completed = not (dry or cut_short)
    well = not failed and (dry or completed)
    status = ExitStatus.CONVERGED if well else ExitStatus.FAILED
    invocation = Invocation(request.inventory, tuple(str(deploy_file(name)) for name in deploys))
    whole = Run(invocation, run.started, files, run.interrupted)
    whole.finish(hosts, status, dry=dry, completed=completed)
    return run.interrupted or status
