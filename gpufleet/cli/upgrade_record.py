"""What the record of a run has for the process that goes on with it, checked before that."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from gpufleet.core.private_file import user_name, why_not_of
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.findings import runs as findings
from gpufleet.upgrade.models import Plan
from gpufleet.upgrade.operations.clusters import NodeAt
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.settings import UpgradeSettings

_NODES = TypeAdapter(dict[str, NodeAt], config=ConfigDict(extra="forbid"))


def enter(order: Order, run: str) -> None:
    """Go on in the folder in which the run was begun: its deploys/, config.py, group_data/ and all
    relative paths are those of then. Raises Stopped, also where another user has it now."""
    try:
        os.chdir(order.folder)
        why = _not_of_owner(order.owner)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise Stopped(findings.FOLDER_LOST(run=run, folder=order.folder, why=why))


def _not_of_owner(owner: int | None) -> str:
    """Why the folder here is not that of the run; "" if it is, or may be."""
    if owner is None:
        return ""
    why = why_not_of(Path(), {owner, os.geteuid(), 0})
    return f"{why}, and belonged to {user_name(owner)} then" if why else ""


def settings_of(store: Store, order: Order, plan: Plan) -> dict[str, UpgradeSettings]:
    """Those of the hosts of a run. Raises Stopped."""
    try:
        return {name: UpgradeSettings.model_validate(order.hosts[name]) for name in plan.by_name}
    except KeyError as error:
        raise store.damaged(f"it has no settings of {error}") from error
    except ValueError as error:
        raise store.damaged(error) from error


def places_of(store: Store, nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, NodeAt]:
    """The nodes of hosts, by host. Raises Stopped."""
    try:
        return _NODES.validate_python(nodes)
    except ValueError as error:
        raise store.damaged(error) from error
