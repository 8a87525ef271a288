"""Which run of this machine a command is for, and which ones are in its way."""

from __future__ import annotations

import os
from collections.abc import Callable

from gpufleet.core.findings import Finding
from gpufleet.core.private_file import Irregular
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.findings import runs as findings
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.show import run_state

Say = Callable[[str], None]
DAMAGED = (Irregular, FileNotFoundError, IsADirectoryError, NotADirectoryError)  # of a record


def to_change(name: str, *, unfinished: bool = True) -> Store:
    """The run of that name; else, with `unfinished`, the one that is not; else the newest. Raises
    Stopped where none is named and several are not finished."""
    found = {} if name else {each.name: text for each in Store.all() if (text := _unfinished(each))}
    if len(found) > 1:
        raise Stopped(findings.SEVERAL_RUNS(runs="; ".join(found.values())))
    return Store.find(next(iter(found), name) if unfinished else name)


def paused(name: str) -> Store:
    """The run, as by `to_change`, whose process is asked to pause. Raises Stopped where it cannot
    be."""
    store = to_change(name)
    if why := store.pause():
        raise Stopped(findings.NOT_PAUSED(run=store.name, why=why))
    return store


def no_other(inventory: str, say: Say) -> None:
    """Raises Stopped for an unfinished run over the same inventory, and for one of another version
    of gpufleet that may be over it. Records that are damaged are set aside, and that is said."""
    wanted = os.path.realpath(inventory)
    for store in Store.all():
        try:
            order, progress = store.seen()
        except Stopped as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and not isinstance(cause, DAMAGED):
                raise  # another user may be at work, or the disk does not answer for a moment
            if _is_of_other_version(error):
                there = store.inventory()
                if store.is_over or (there and there != wanted):
                    continue
                if there and store.is_foreign:
                    raise Stopped(_foreign(store)) from error
                raise
            aside = store.set_aside(error.findings[0].message)
            if aside is None:
                raise
            say(f"{aside.code} {aside.message}\n  {aside.remedy}")
            continue
        there = os.path.realpath(os.path.join(order.folder, order.inventory))
        if there == wanted and not progress.over:
            if store.is_foreign:
                raise Stopped(_foreign(store))
            state = run_state(progress, locked=store.is_locked)
            raise Stopped(findings.UNFINISHED(run=store.name, inventory=inventory, state=state))


def _foreign(store: Store) -> Finding:
    return findings.FOREIGN_RUN(run=store.name, folder=store.path)


def _is_of_other_version(error: Stopped) -> bool:
    return error.findings[0].code == findings.OTHER_VERSION.code


def _unfinished(store: Store) -> str:
    """A run in words; "" for one that is over, or of another user. One whose record cannot be used
    may not be over."""
    if store.is_foreign:
        return ""
    try:
        progress = store.progress()
        order, _ = store.head()
    except Stopped as error:
        ended = _is_of_other_version(error) and store.is_over
        return "" if ended else f"{store.name} (its record cannot be used)"
    state = run_state(progress, locked=store.is_locked)
    return "" if progress.over else f"{store.name} over {order.inventory} ({state})"
