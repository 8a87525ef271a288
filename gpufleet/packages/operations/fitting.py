"""Fits a transaction to the versions in a host's repositories, and simulates it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.host.reading import FactReader
from gpufleet.packages import findings
from gpufleet.packages.operations.reading import (
    AvailableVersions,
    KernelDevel,
    RpmSimulation,
    Simulation,
    Unreadable,
)
from gpufleet.packages.operations.repository import sources_unreadable
from gpufleet.packages.transaction import (
    PackageTransaction,
    install_words,
    is_headers,
    resolve_transaction,
    rpm_words,
)
from gpufleet.packages.trial import apt_moved, apt_refusal, rpm_refusal


def fit_transaction(asked: PackageTransaction, ask: FactReader) -> PackageTransaction | Finding:
    """The transaction with the versions in the repositories, or why it must not run.

    Changes nothing: the package manager only simulates it.
    """
    names = tuple(dict.fromkeys([*asked.packages, *asked.installed]))
    available = ask(AvailableVersions, asked.manager, names)
    if isinstance(available, Unreadable):
        return sources_unreadable(asked.manager, available)
    chosen = resolve_transaction(asked, available)
    if isinstance(chosen, Finding):
        lacking = tuple(name for name in asked.packages if name not in available)
        return _excluded(asked.manager, lacking, ask) or chosen
    return (_try_apt if asked.manager == "apt" else _try_rpm)(chosen, ask)


def _try_apt(chosen: PackageTransaction, ask: FactReader) -> PackageTransaction | Finding:
    words = install_words(chosen)
    simulation = ask(Simulation, tuple(words))
    finding = apt_refusal(simulation, chosen, " ".join([words[0], "-s", *words[1:]]))
    return finding or replace(chosen, moved=apt_moved(simulation))


def _try_rpm(chosen: PackageTransaction, ask: FactReader) -> PackageTransaction | Finding:
    trial = ask(RpmSimulation, chosen.manager, (*rpm_words(chosen), *chosen.prerequisites))
    known = _with_headers(chosen, trial.unknown, ask)
    if known != chosen:
        chosen = known
        trial = ask(RpmSimulation, chosen.manager, (*rpm_words(chosen), *chosen.prerequisites))
    finding = rpm_refusal(trial, chosen)
    if finding:
        return _excluded(chosen.manager, trial.unknown, ask) or finding
    return replace(chosen, added=trial.added, moved=trial.moved, download=trial.download)


def _with_headers(
    chosen: PackageTransaction, unknown: Sequence[str], ask: FactReader
) -> PackageTransaction:
    """The transaction with the package name that dnf uses for headers, if it does not know ours."""
    lacking = [name for name in unknown if is_headers(name)]
    return headers_of_dnf(chosen, lacking, ask) if lacking else chosen


def headers_of_dnf(
    chosen: PackageTransaction, lacking: Sequence[str], ask: FactReader
) -> PackageTransaction:
    """The transaction with dnf's name for packages of headers that it knows by another name."""
    if chosen.manager != "dnf":
        return chosen
    known = ask(KernelDevel, chosen.facts.kernel.release)
    if not known:
        return chosen
    names = tuple(known if name in lacking else name for name in chosen.prerequisites)
    return replace(chosen, prerequisites=names)


def _excluded(manager: PackageManager, names: tuple[str, ...], ask: FactReader) -> Finding | None:
    """The finding that yum or dnf hides packages, which would otherwise look missing."""
    there = ask(AvailableVersions, manager, names, True) if manager != "apt" and names else {}
    if not there or isinstance(there, Unreadable):
        return None
    return findings.EXCLUDED_PACKAGES(manager=manager, packages=", ".join(there))
