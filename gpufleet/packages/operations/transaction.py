"""Package transactions on hosts: resolve, simulate, download, then run as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyinfra import host, state
from pyinfra.api import StringCommand

from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.facts.files import HOME
from gpufleet.host.files import put
from gpufleet.host.findings import MODULE_NOT_BUILT
from gpufleet.host.operation import Commands, Later, operation
from gpufleet.host.reading import read
from gpufleet.host.shell import explain, script, stop
from gpufleet.packages import apt_trial, findings
from gpufleet.packages.job import Found, Job
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.operations.logs import logged
from gpufleet.packages.operations.reading import (
    AvailableVersions,
    KernelDevel,
    RpmTrial,
    Simulation,
    Unreadable,
)
from gpufleet.packages.operations.repository import refresh, sources_unreadable
from gpufleet.packages.rpm_trial import refusal
from gpufleet.packages.transaction import (
    Transaction,
    choose_transaction,
    install_words,
    is_headers,
    rpm_words,
)
from gpufleet.run.reporting import RunReport


def resolve_and_download(sentence: str, job: Job, prepared: bool = False) -> Later[Found]:
    """Resolve the version of a job and download it; the result has a value after that step, and
    none if no transaction is needed. `prepared`: the host has lists and packages already, and needs
    no repository."""
    found: Later[Found] = Later()
    _look_up(sentence, job, found, prepared)
    return found


@operation
def _look_up(job: Job, found: Later[Found], prepared: bool) -> Commands:
    """
    Find the version in the repositories, simulate the transaction and download its packages.

    Installs nothing.

    + job: the family and its version
    + found: receives the transaction
    + prepared: the lists were fetched before
    """
    if not job.needed:
        host.noop(f"{job.family.title} is installed")
        return
    yield wait_for_lock(job.lock_timeout)
    if job.facts.broken:  # an interrupted transaction
        yield script("packages/finish")
    if not prepared:
        yield from refresh(job.repository, job.manager)
    names = tuple(dict.fromkeys([*job.family.packages, *job.family.installed]))
    available = read(AvailableVersions, job.manager, names)
    if isinstance(available, Unreadable):
        yield stop(host.name, sources_unreadable(job.manager, available))
        return
    chosen = choose_transaction(job.family, available)
    if isinstance(chosen, Finding):
        lacking = tuple(name for name in job.family.packages if name not in available)
        yield stop(host.name, _excluded(job.manager, lacking) or chosen)
        return
    found.value = Found(chosen)
    yield script(
        "packages/packages_before", job.record
    )  # a download may import keys, which count as packages
    if job.manager == "apt":
        yield from _try_out(job, chosen)
    else:
        yield from _try_out_rpm(job, chosen, found)


def _try_out_rpm(job: Job, chosen: Transaction, found: Later[Found]) -> Commands:
    """Stop the host if yum or dnf would do more than planned; else download the packages."""
    words = (*rpm_words(chosen), *chosen.prerequisites)
    trial = read(RpmTrial, job.manager, words)
    known = _with_headers(job, chosen, trial.unknown)
    if known != chosen:
        chosen = known
        words = (*rpm_words(chosen), *chosen.prerequisites)
        trial = read(RpmTrial, job.manager, words)
    finding = refusal(trial, chosen, job.patterns, job.manager)
    if finding:
        yield stop(host.name, _excluded(job.manager, trial.unknown) or finding)
        return
    found.value = Found(chosen, trial.added)
    message = explain(
        host.name, findings.TRANSACTION_REFUSED(manager=job.manager, problem="see below.")
    )
    yield script("packages/rpm_transaction", job.ours, "", job.manager, "fetch", message, *words)


def _with_headers(job: Job, chosen: Transaction, unknown: Sequence[str]) -> Transaction:
    """The transaction with the headers under the name that dnf knows, where ours is unknown."""
    lacking = [name for name in unknown if is_headers(name)]
    known = read(KernelDevel, job.facts.kernel.release) if lacking and job.manager == "dnf" else ""
    if not known:
        return chosen
    names = tuple(known if name in lacking else name for name in chosen.prerequisites)
    return replace(chosen, prerequisites=names)


def _excluded(manager: PackageManager, names: tuple[str, ...]) -> Finding | None:
    """That yum or dnf hides packages, which look as if no repository had them."""
    there = read(AvailableVersions, manager, names, True) if manager != "apt" and names else {}
    if not there or isinstance(there, Unreadable):
        return None
    return findings.EXCLUDED_PACKAGES(manager=manager, packages=", ".join(there))


def _try_out(job: Job, chosen: Transaction) -> Commands:
    """Stop the host if apt would do more than planned; else download the packages."""
    words = install_words(job.manager, chosen, job.lock_timeout)
    simulation = read(Simulation, tuple(words))
    typed = " ".join([words[0], "-s", *words[1:]])
    finding = apt_trial.refusal(simulation, chosen, job.patterns, typed)
    if finding:
        yield stop(host.name, finding)
        return
    yield _apt(chosen, [words[0], "--download-only", *words[1:]])


def _apt(chosen: Transaction, words: Sequence[str], ours: str = "") -> StringCommand:
    """The command that runs apt; a failure is reported with a code.

    `ours`: file on the host for the names that it installs, from a second simulation: packages
    that others installed since the first one are theirs.
    """
    simulation = read(Simulation, tuple(words)) if ours else []
    names = apt_trial.added(simulation)
    failed = explain(host.name, findings.TRANSACTION_FAILED(manager="apt"))
    unbuilt = explain(host.name, MODULE_NOT_BUILT(version=chosen.version))
    return script("packages/apt_transaction", ours, " ".join(names), failed, unbuilt, *words)


def _by_rpm(job: Job, added: str, words: Sequence[str]) -> StringCommand:
    """The command that runs yum or dnf, which installs `added`."""
    failed = explain(host.name, findings.TRANSACTION_FAILED(manager=job.manager))
    return script("packages/rpm_install", job.ours, added, failed, *words)


@operation
def install(job: Job, found: Later[Found]) -> Commands:
    """
    Run the resolved transaction: pins, build prerequisites, then the family.

    + job: the family and its version
    + found: the result of `resolve_and_download`
    """
    if not job.needed:
        host.noop(f"{job.family.title} is installed")
        return
    yield wait_for_lock(job.lock_timeout)
    if found.value is None:
        return
    chosen, added = found.value.transaction, " ".join(found.value.added)
    # what was held before is not ours: an aborted run does not release it
    mine = {*chosen.names, *chosen.prerequisites} - job.facts.holds
    yield script("packages/note_begun", f"{job.record}.begun", *sorted(mine))
    pins = job.pins(chosen.version)
    if pins:
        yield from put(pins)
    if chosen.prerequisites:
        first = Transaction(chosen.version, (), chosen.prerequisites, ())
        words = install_words(job.manager, first, job.lock_timeout)
        if job.manager == "apt":
            yield from logged(_apt(chosen, words, job.ours))
        else:
            yield from logged(_by_rpm(job, added, words))
    yield from _carry_out(job, chosen, added)
    if state.is_executing and job.reports:
        RunReport.of(state).host(host.name).seen[job.role] = chosen.version
    for path, before in job.makes:
        yield script("packages/note_made", HOME, path, before)


def _carry_out(job: Job, chosen: Transaction, added: str) -> Commands:
    if job.manager == "apt":
        words = install_words(job.manager, chosen, job.lock_timeout)
        yield from logged(_apt(chosen, words, job.ours))
        return
    held = [name for name in (*chosen.names, *chosen.remove) if name in job.family.installed]
    if held:
        locked = explain(host.name, findings.NOT_RELEASED())
        yield script("packages/release", job.manager, locked, *held)
    message = explain(host.name, findings.TRANSACTION_INCOMPLETE())
    words = rpm_words(chosen)
    yield from logged(
        script("packages/rpm_transaction", job.ours, added, job.manager, "run", message, *words)
    )


@operation
def hold(job: Job, names: Sequence[str], plugin: Sequence[str] = ()) -> Commands:
    """
    Hold packages at their installed version.

    + job: the role's
    + names: packages to hold; none means no change
    + plugin: missing packages that holding requires
    """
    if not names:
        host.noop("the packages are held")
        return
    manager = job.manager
    yield wait_for_lock(job.lock_timeout)
    if plugin:
        yield script("packages/packages_before", job.record)
        come = " ".join(read(RpmTrial, manager, tuple(plugin)).added)
        yield script("packages/note_begun", f"{job.record}.begun", *plugin)
        yield from logged(_by_rpm(job, come, (manager, "-y", "install", *plugin)))
    yield script("packages/hold", manager, explain(host.name, findings.NOT_HELD()), *names)
