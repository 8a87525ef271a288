"""The record on the host of what was installed, from where, by which version of gpufleet."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from pyinfra import host

from gpufleet import __version__
from gpufleet.operations.files import HOME, put
from gpufleet.operations.operation import Commands, operation
from gpufleet.operations.shell import command
from gpufleet.plan.files import FileWrite

PATH = f"{HOME}/provenance.json"
SCHEMA = 1
KEPT_HISTORY = 20  # entries


def merge(old: dict[str, Any] | None, new: dict[str, Any], now: str) -> dict[str, Any] | None:
    """The record with `new` in it and the change in its history; None where nothing changed.

    `new` holds the roles' parts (driver, toolkit) and `files`, path -> sha256.
    """
    before = {key: (old or {}).get(key) for key in new}
    if before == new:
        return None
    history = [*(old or {}).get("history", []), {"time": now, "driver": _version(new, "driver"),
               "toolkit": _version(new, "toolkit")}][-KEPT_HISTORY:]  # fmt: skip
    head = {"schema": SCHEMA, "gpufleet": __version__, "time": now}
    return {**(old or {}), **head, **new, "history": history}


def _version(record: dict[str, Any], role: str) -> str | None:
    part = record.get(role) or {}
    version = part.get("version")
    return str(version) if version else None


@operation
def record(old: dict[str, Any] | None, new: Callable[[], dict[str, Any]]) -> Commands:
    """
    Write down what gpufleet installed on this host.

    + old: the record that is there
    + new: the parts to record, known at the end of the run
    """
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    merged = merge(old, new(), now)
    if merged is None:
        host.noop("the record is up to date")
        return
    text = json.dumps(merged, indent=2, sort_keys=True) + "\n"
    yield from put([FileWrite(PATH, text, 0o644)])
    yield command("rm", "-f", f"{HOME}/driver.before", f"{HOME}/toolkit.before")
