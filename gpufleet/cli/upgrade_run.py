"""Runs of `gpufleet upgrade`: plans, shows and carries them out in this process."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

import click
import pyinfra_cli  # noqa: F401 first: gevent replaces parts of the standard library

from gpufleet.cli.deploy import deploy_file, targets_of
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.inventory import CONTROL_PLANE, ListedHost
from gpufleet.core.live import LiveProgress
from gpufleet.core.paths import user_folder
from gpufleet.core.private_file import make_private
from gpufleet.core.process import signal_running
from gpufleet.core.progress import RunProgress, heartbeat_line, terminal_lines
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import each_line
from gpufleet.gpu_stack.operations.accesses import accesses_of
from gpufleet.host.upgrade_settings import Subject
from gpufleet.host.upgrade_state import Kind, Phase
from gpufleet.upgrade.inventory_lines import lines_to_change, targets_in, targets_there
from gpufleet.upgrade.operations.clusters import open_clusters
from gpufleet.upgrade.operations.host_steps import HostSteps
from gpufleet.upgrade.operations.loop import carry_on
from gpufleet.upgrade.operations.planning import (
    PlannedRun,
    UpgradeTarget,
    begin_run,
    read_run_hosts,
)
from gpufleet.upgrade.operations.run import UpgradeRun
from gpufleet.upgrade.operations.session import Session
from gpufleet.upgrade.show import (
    RELEASE_STUCK,
    ended_text,
    shown_progress,
    status_dict,
    status_text,
    text_without_run,
    upgrade_plan_text,
)
from gpufleet.upgrade.subjects import WantedChange
from gpufleet.verify.inventory import Target as InventoryHost

UPGRADE_DEPLOY = "upgrade_driver"
PAUSE_SIGNALS = {signal.SIGINT: ExitStatus.INTERRUPTED, signal.SIGTERM: ExitStatus.TERMINATED}
PAUSES = (
    "finishing changed hosts, returning draining ones; press again to end at once; "
    "the same command continues the run"
)


class Command:
    """One command over hosts of an inventory."""

    def __init__(
        self,
        inventory: str,
        targets: Sequence[InventoryHost],
        options: Sequence[str],
        wanted: WantedChange,
        metrics: Path | None,
    ) -> None:
        self.inventory, self.wanted, self.metrics = inventory, wanted, metrics
        hosts = [target for target in targets if not target.is_cluster]
        hosts.sort(key=lambda target: CONTROL_PLANE in target.groups)  # not canaries, if possible
        self.targets = [UpgradeTarget(each.name, each.data, known_as(each)) for each in hosts]
        self.session = Session(inventory, options)
        self.steps = HostSteps(self.session, deploy_file(UPGRADE_DEPLOY), wanted.subject)
        self.folder = user_folder("XDG_STATE_HOME", ".local/state") / "gpufleet/upgrades"
        self.log: Path | None = None
        self.said_pins: set[str] = set()

    def say(self, line: str, *, result: bool = False) -> None:
        """Print a line of progress, or the result on standard output, and log it."""
        text = each_line(hide_secrets(line))
        with suppress(OSError):  # the terminal is gone
            click.echo(text, err=not result)
        if self.log:
            with suppress(OSError), self.log.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")

    def show(self, *, as_json: bool) -> ExitStatus:
        """Print the states of the hosts. Returns status 1 if a host cannot be read."""
        found = list(self.steps.each(self.steps.read, [t.name for t in self.targets]).values())
        self.session.close()
        text = status_text(self.inventory, found)
        click.echo(json.dumps(status_dict(self.inventory, found), indent=2) if as_json else text)
        return ExitStatus.FAILED if any(each.problem for each in found) else ExitStatus.CONVERGED

    def run(
        self,
        question: str | None,
        kind: Kind = "upgrade",
        *,
        only_plan: bool,
        release: bool = False,
    ) -> ExitStatus:
        """Plan a run or find the unfinished one, show it, ask, and carry it out. `release`: as in
        read_run_hosts. Raises Stopped."""
        fleet = self._planned(kind, release=release)
        plan = fleet.plan
        nodes = {host: place.node for host, place in fleet.places.items() if host in plan.hosts}
        click.echo(upgrade_plan_text(plan, fleet.work, nodes, fleet.leaving, fleet.warnings))
        there = targets_there(plan.left_out, self.wanted)
        self._say_pins(plan.subject, {**there, **targets_in(plan.hosts)})
        if release and not plan.hosts:
            click.echo(RELEASE_STUCK)
        if only_plan or not plan.hosts:
            self.session.close()
            return ExitStatus.FAILED if plan.blocked else ExitStatus.CONVERGED
        return self._carried_out(fleet, question)

    def _say_pins(self, subject: Subject, moves: Mapping[str, tuple[str, str]]) -> None:
        """Print, once, the inventory lines that do not match the versions of these hosts."""
        lines = lines_to_change(self.session.inventory, self.inventory, subject, moves)
        if not self.said_pins.issuperset(lines):
            for line in lines:
                click.echo(each_line(hide_secrets(line)))
        self.said_pins.update(lines)

    def abort(self, question: str | None) -> ExitStatus:
        """End an unfinished run. Raises Stopped."""
        names = [target.name for target in self.targets]
        found = list(self.steps.each(self.steps.read, names).values())
        open_ = [each.state for each in found if each.state and each.state.unfinished]
        if not open_:
            text, is_well = text_without_run(found)
            click.echo(text)
            self.session.close()
            return ExitStatus.CONVERGED if is_well else ExitStatus.FAILED
        self.steps.subject = open_[0].subject
        fleet = self._planned(open_[0].kind, ends=True)
        click.echo(status_text(self.inventory, found))
        return self._carried_out(fleet, question, "abort")

    def _planned(self, kind: Kind, *, ends: bool = False, release: bool = False) -> PlannedRun:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        accesses = accesses_of(targets_of(self.inventory, ()))
        return read_run_hosts(
            self.targets, self.steps, self.wanted, accesses, kind,
            name=name, ends=ends, release=release,
        )  # fmt: skip

    def _carried_out(self, fleet: PlannedRun, question: str | None, asked: str = "") -> ExitStatus:
        if question:
            click.confirm(question, abort=True, err=True)
        name = fleet.plan.run
        self.log = self.folder / f"{name}.log"
        try:
            make_private(self.folder)
            self.session.log_to(self.log)
        except OSError as error:  # before any host changes: the log is not optional
            raise click.FileError(str(self.log), error.strerror) from error
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the run continues without its terminal
        self.steps.run = name
        clusters = open_clusters(fleet.places, name, fleet.plan.hosts.keys(), self.say)
        fleet = begin_run(fleet, self.steps, time.time())
        run = UpgradeRun(
            fleet.plan, fleet.settings, self.steps, self.say,
            {host: cluster for host, cluster in clusters.items() if host in fleet.plan.hosts},
            reboots=fleet.reboots, metrics=self.metrics, inventory=self.inventory,
        )  # fmt: skip
        run.asked = asked
        shown, ended = _live(run), list[ExitStatus]()

        def interrupt(number: int, frame: FrameType | None) -> None:
            status = PAUSE_SIGNALS[signal.Signals(number)]
            if ended:
                shown.abandon()
                with suppress(OSError):  # waits for no lock
                    os.write(2, f"\n{hide_secrets(ended_text(run.states))}\n".encode())
                signal_running(signal.SIGKILL)
                os._exit(status)
            ended.append(status)
            run.asked = run.asked or "pause"
            self.say(PAUSES)

        for each in PAUSE_SIGNALS:
            signal.signal(each, interrupt)
        self.say(f"run {name}; log {self.log}")
        try:
            shown.start()
            end = carry_on(run)
        finally:
            shown.stop()
            run.report(running=False)
            self.session.close()
        self.say(f"run {name}: {end}", result=True)
        if any(state.phase is Phase.STUCK for state in run.states.values()):
            self.say(RELEASE_STUCK, result=True)
        done = {n: state for n, state in run.states.items() if state.phase is Phase.DONE}
        self._say_pins(fleet.plan.subject, targets_in(done))
        if run.given_up:
            raise Stopped(*dict.fromkeys(run.given_up.values()))
        status = _status(run, asked)
        return ended[0] if ended and status is not ExitStatus.CONVERGED else status


def _status(run: UpgradeRun, asked: str) -> ExitStatus:
    """0 if every host has its target or is left out on purpose; after an abort, 0 if no host is out
    of service."""
    states = run.states.values()
    if asked:
        met = not any(state.out_of_service for state in states)
    else:
        met = all(state.phase is Phase.DONE for state in states) and not run.plan.blocked
    return ExitStatus.CONVERGED if met else ExitStatus.FAILED


def _live(run: UpgradeRun) -> LiveProgress:
    """Progress: the hosts that are out of service, the present step of each, and its duration."""
    begun = run.now

    def now() -> RunProgress:
        return shown_progress(run.states, begun, run.now)

    return LiveProgress(
        lambda width, height: terminal_lines(now(), width, height), lambda: heartbeat_line(now())
    )


def known_as(target: ListedHost) -> tuple[str, ...]:
    """The names and addresses by which the inventory reaches a host."""
    name = target.name.rpartition("/")[2]  # without the connector: @ssh/gpu-01
    own = (socket.gethostname(),) if name == "@local" else ()
    address = str(target.data.get("ssh_hostname") or "")
    return (name, *own, *([address] if address else []))
