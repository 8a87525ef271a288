"""Reads the hosts of an inventory for a command: progress on standard error, exit statuses."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.status import Status

from gpufleet.cli.output import note
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import is_quiet
from gpufleet.core.names import counted
from gpufleet.core.visible import each_line
from gpufleet.host.gather import NoInventory, NoSuchHost, Progress
from gpufleet.status.models import Seen
from gpufleet.status.operations import read_hosts
from gpufleet.verify.inventory import VerifyError, unmatched

HEARTBEAT = 15.0  # seconds between two lines where standard error is no terminal
REFRESH = 1.0  # seconds between two looks at the clock on a terminal


class Shown(Progress):
    """One live line on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.hosts = self.done = 0
        self.start = time.monotonic()
        self.live: Status | None = None

    def began(self, hosts: int) -> None:
        if is_quiet():
            return
        self.hosts = hosts
        if self.console.is_terminal:
            self.live = self.console.status(self.line)
            self.live.start()
        else:
            note(self.line)

    def answered(self) -> None:
        self.done += 1
        if self.live:
            self.live.update(self.line)

    @property
    def line(self) -> str:
        if not self.done:
            return f"Reading {counted(self.hosts, 'host')}"
        return f"Read {self.done} of {counted(self.hosts, 'host')}"

    def beat(self) -> None:
        """Show that time passes."""
        text = f"{self.line}, {time.monotonic() - self.start:.0f} s"
        if self.live:
            self.live.update(text)
        elif self.hosts:
            note(text)

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Beats meanwhile, and leaves no live line."""
        import gevent  # pyinfra's, imported when it is used: it replaces parts of the library
        from gevent.event import Event

        ended = Event()
        seconds = REFRESH if self.console.is_terminal else HEARTBEAT

        def beats() -> None:
            while not ended.wait(timeout=seconds):
                self.beat()

        beating = gevent.spawn(beats)
        try:
            yield
        finally:
            ended.set()
            beating.join()
            if self.live:
                self.live.stop()


class UsageFailed(click.UsageError):
    """Wrong usage of a command in which status 2 says something else."""

    exit_code = int(ExitStatus.FAILED)


def read_fleet(
    inventory: str, limit: Sequence[str], wrong: type[click.UsageError] = click.UsageError
) -> tuple[list[Seen], list[str]]:
    """Hosts and names of clusters; ends the process with the reason where they cannot be read.

    `wrong`: what is raised for an inventory that cannot be used.
    """
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra_cli.exceptions import CliError

    progress = Shown()
    try:
        with progress.clock():
            return read_hosts(inventory, limit, progress)
    except NoSuchHost as error:
        found = unmatched(error.name, inventory, error.hosts, error.groups)
        click.echo(str(VerifyError(found)), err=True)
        sys.exit(ExitStatus.NOTHING)
    except NoInventory as error:
        click.echo(each_line(str(error)), err=True)
        sys.exit(wrong.exit_code)
    except (PyinfraError, CliError) as error:
        raise wrong(each_line(str(error))) from error
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(ExitStatus.INTERRUPTED)
