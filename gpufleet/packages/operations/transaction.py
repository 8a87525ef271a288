"""Runs package transactions on hosts, with their logs: resolve, simulate, download, install."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from pyinfra import host, state
from pyinfra.api import Host, StringCommand

from gpufleet.core.findings import Finding
from gpufleet.facts.files import HOME
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.files import put_files
from gpufleet.host.findings import MODULE_NOT_BUILT
from gpufleet.host.operation import Commands, Later, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import explain_finding, script_command, stop_command
from gpufleet.host.sudo import run_on_host
from gpufleet.packages import findings
from gpufleet.packages.holds import is_held
from gpufleet.packages.operations.fitting import fit_transaction
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.operations.reading import RpmSimulation, Simulation
from gpufleet.packages.operations.repository import refresh_lists
from gpufleet.packages.transaction import PackageTransaction, install_words, rpm_words
from gpufleet.packages.trial import apt_added
from gpufleet.run.last_line import LastLine
from gpufleet.run.reporting import RunReport

# before a command: limits its seconds, if the host has `timeout`
READ_TIMEOUT = "$(command -v timeout >/dev/null && echo timeout 2)"


def resolve_and_download(
    sentence: str, asked: PackageTransaction, prepared: bool = False
) -> Later[PackageTransaction]:
    """Resolve the version of a transaction and download it. The result is set after that step, or
    stays empty if no transaction is needed. `prepared`: the host already has lists and packages,
    and needs no repository."""
    found: Later[PackageTransaction] = Later()
    _look_up(sentence, asked, found, prepared)
    return found


@host_operation
def _look_up(
    asked: PackageTransaction, found: Later[PackageTransaction], prepared: bool
) -> Commands:
    """
    Find the version in the repositories, simulate the transaction and download its packages.

    Installs nothing.

    + asked: the packages and their version
    + found: receives the transaction
    + prepared: the lists were fetched before
    """
    if not asked.needed:
        host.noop(f"{asked.title} is installed")
        return
    yield wait_for_lock(asked.lock_timeout)
    if asked.facts.broken:  # an interrupted transaction
        yield script_command("packages/finish")
    if not prepared:
        yield from refresh_lists(asked.repository, asked.manager)
    chosen = fit_transaction(asked, read_fact)
    if isinstance(chosen, Finding):
        yield stop_command(host.name, chosen)
        return
    found.value = chosen
    # a download may import keys, which count as packages
    yield script_command("packages/packages_before", asked.record)
    if asked.manager == "apt":
        words = install_words(chosen)
        yield _apt(chosen, [words[0], "--download-only", *words[1:]])
        return
    refused = findings.TRANSACTION_REFUSED(manager=chosen.manager, problem="see below.")
    how = (chosen.ours, "", chosen.manager, "fetch", explain_finding(host.name, refused))
    words = [*rpm_words(chosen), *chosen.prerequisites]
    yield script_command("packages/rpm_transaction", *how, *words)


def _apt(chosen: PackageTransaction, words: Sequence[str], ours: str = "") -> StringCommand:
    """The command that runs apt. A failure is reported with a code.

    `ours`: file on the host for the names of newly installed packages, from a second simulation.
    Packages that someone else installed since the first one are not in it.
    """
    simulation = read_fact(Simulation, tuple(words)) if ours else []
    names = " ".join(apt_added(simulation))
    failed = explain_finding(host.name, findings.TRANSACTION_FAILED(manager="apt"))
    unbuilt = explain_finding(host.name, MODULE_NOT_BUILT(version=chosen.version))
    return script_command("packages/apt_transaction", ours, names, failed, unbuilt, *words)


def _by_rpm(chosen: PackageTransaction, added: str, words: Sequence[str]) -> StringCommand:
    """The command that runs yum or dnf, which installs `added`."""
    failed = explain_finding(host.name, findings.TRANSACTION_FAILED(manager=chosen.manager))
    return script_command("packages/rpm_install", chosen.ours, added, failed, *words)


@host_operation
def install_packages(asked: PackageTransaction, found: Later[PackageTransaction]) -> Commands:
    """
    Run the resolved transaction: pins, build prerequisites, then the packages.

    + asked: the packages and their version
    + found: the result of `resolve_and_download`
    """
    if not asked.needed:
        host.noop(f"{asked.title} is installed")
        return
    yield wait_for_lock(asked.lock_timeout)
    if found.value is None:
        return
    chosen, added = found.value, " ".join(found.value.added)
    # packages held before this run keep their hold, even if the run aborts
    names = {*chosen.names, *chosen.prerequisites}
    mine = {name for name in names if not is_held(name, chosen.facts)}
    yield script_command("packages/note_begun", f"{chosen.record}.begun", *sorted(mine))
    pins = [file for file in chosen.pins(chosen.version) if not file.is_on(chosen.facts)]
    if pins:
        yield from put_files(pins)
    words = install_words(chosen)
    if chosen.prerequisites:
        first = install_words(replace(chosen, install=(), companions=(), remove=()))
        apt = chosen.manager == "apt"
        command = _apt(chosen, first, chosen.ours) if apt else _by_rpm(chosen, added, first)
        yield from log_progress(command)
    if chosen.manager == "apt":
        yield from log_progress(_apt(chosen, words, chosen.ours))
    else:
        held = [n for n in (*chosen.names, *chosen.remove) if n in chosen.installed]
        if held:
            locked = explain_finding(host.name, findings.HOLD_FAILED(what="released"))
            yield script_command("packages/release", chosen.manager, locked, *held)
        message = explain_finding(host.name, findings.TRANSACTION_FAILED(manager=chosen.manager))
        how = (chosen.ours, added, chosen.manager, "run", message, *rpm_words(chosen))
        yield from log_progress(script_command("packages/rpm_transaction", *how))
    if state.is_executing and chosen.reports and chosen.version:
        RunReport.of(state).host(host.name).seen[chosen.role] = chosen.version
    for path, before in chosen.makes:
        yield script_command("packages/note_made", HOME, path, before)


@host_operation
def hold_packages(
    asked: PackageTransaction, names: Sequence[str], plugin: Sequence[str] = ()
) -> Commands:
    """
    Hold packages at their installed version.

    + asked: the role's transaction
    + names: packages to hold; none means no change
    + plugin: missing packages that holding requires
    """
    if not names:
        host.noop("the packages are held")
        return
    manager = asked.manager
    yield wait_for_lock(asked.lock_timeout)
    if plugin:
        yield script_command("packages/packages_before", asked.record)
        come = " ".join(read_fact(RpmSimulation, manager, tuple(plugin)).added)
        yield script_command("packages/note_begun", f"{asked.record}.begun", *plugin)
        yield from log_progress(_by_rpm(asked, come, (manager, "-y", "install", *plugin)))
    message = explain_finding(host.name, findings.HOLD_FAILED(what="held"))
    yield script_command("packages/hold", manager, message, *names)


def log_progress(command: StringCommand) -> Commands:
    """Run the command while the progress shows the last line of the logs."""
    # `host` is pyinfra's proxy for the current host, which other greenlets do not have
    itself, began = host.state.inventory.get_host(host.name), time.monotonic()
    with LastLine(itself, lambda: _last_lines(itself, began)).shown():
        yield command


def _last_lines(host: Host, began: float) -> str:
    """The last lines since `began`, read as the login user, because sudo would log each read."""
    since = script_command("packages/last_line", str(int(time.monotonic() - began)))
    _, output = run_on_host(host, frame_command(StringCommand(READ_TIMEOUT, since)))
    return "\n".join(framed_answer(output.stdout_lines) or [])
