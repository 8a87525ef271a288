"""Reads the hosts and clusters of an inventory for a command, with progress on standard error."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from gpufleet.cli.deploy import deploy_file, pyinfra_arguments
from gpufleet.cli.output import print_note
from gpufleet.cli.own_catalog import require_own_catalog
from gpufleet.core.live import LiveProgress, is_quiet
from gpufleet.core.names import count_noun
from gpufleet.core.process import Process
from gpufleet.core.python import python_module
from gpufleet.core.stopped import Unmatched
from gpufleet.core.visible import each_line
from gpufleet.host.gather import Gathered, GatherProgress, NoSuchHost
from gpufleet.run.interrupts import interrupt_main_greenlet
from gpufleet.run.plan_contract import Hosts
from gpufleet.run.report_file import hosts_of_report, report_of_process
from gpufleet.status.models import SeenHost
from gpufleet.status.operations import ReadBefore, ReadMore, read_hosts
from gpufleet.verify.inventory import unmatched_limit


class Shown(GatherProgress):
    """One live line on a terminal; otherwise, a line from time to time."""

    def __init__(self, noun: str = "host") -> None:
        self._noun, self._total, self._done = noun, "", 0
        self._start = time.monotonic()
        self.live = LiveProgress(lambda width, height: [self.line], lambda: self.line)

    def began(self, hosts: int) -> None:
        self._total = count_noun(hosts, self._noun)
        if not self.live.terminal and not is_quiet():
            print_note(f"Reading {self._total}")
        self.live.start()

    def answered(self) -> None:
        self._done += 1

    @property
    def line(self) -> str:
        seconds = time.monotonic() - self._start
        return f"Read {self._done} of {self._total}, {seconds:.0f} s"


def read_hosts_and_clusters(
    inventory: str,
    limit: Sequence[str],
    *,
    health: bool = False,
    before: ReadBefore | None = None,
    more: ReadMore | None = None,
) -> tuple[list[SeenHost], list[Gathered]]:
    """Hosts, and clusters with their data. Raises Stopped for a wrong entry of catalog.d/, an
    unusable inventory or an unmatched limit. `health`, `before`, `more`: see `read_hosts`."""
    require_own_catalog()
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra_cli.exceptions import CliError

    progress = Shown()
    try:
        with interrupt_main_greenlet():
            return read_hosts(inventory, limit, progress, health=health, before=before, more=more)
    except NoSuchHost as error:
        found = unmatched_limit(error.name, inventory, error.hosts, error.groups)
        raise Unmatched(found) from error
    except (PyinfraError, CliError) as error:
        raise click.UsageError(each_line(str(error))) from error
    finally:
        progress.live.stop()


def read_clusters(inventory: str, names: Sequence[str]) -> Hosts:
    """The clusters of a plan's report, by name. {} without a report."""
    if not names:
        return {}
    if not is_quiet():
        print_note(f"Reading {count_noun(len(names), 'cluster')}")
    words = pyinfra_arguments(inventory, [deploy_file("preflight")], names, ())
    with report_of_process() as (report, environment):
        Process([*python_module("pyinfra"), *words], environment=environment).wait()
        return hosts_of_report(report) or {}
