"""The lines of an inventory with other versions than a run installs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpufleet.core.names import list_names
from gpufleet.core.versions import branch_of
from gpufleet.host.upgrade_state import HostState
from gpufleet.upgrade.models import LeftOut
from gpufleet.upgrade.plan import SAME
from gpufleet.upgrade.subjects import WantedChange

PINS_HEAD = (
    "The inventory asks for another version: change it, or each plan reports it (GF149, GF424)."
)
UNSET_HEAD = "The inventory sets no branch: without this line, new hosts get the catalog's default."


def targets_in(states: Mapping[str, HostState]) -> dict[str, tuple[str, str]]:
    """Host -> versions before and after. It is empty if the run only reboots."""
    moves = {name: (state.before, state.target) for name, state in states.items()}
    return {} if any(state.subject == "reboot" for state in states.values()) else moves


def targets_there(left: Iterable[LeftOut], wanted: WantedChange) -> dict[str, tuple[str, str]]:
    """The mapping of targets_in, for hosts that already had the version of the command line."""
    same, version = SAME.format(target=wanted.version), wanted.version
    return {each.name: (version, version) for each in left if version and each.reason == same}


def lines_to_change(
    inventory: Any, path: str, subject: str, moves: Mapping[str, tuple[str, str]]
) -> list[str]:
    """The lines that pyinfra's inventory should have, each with its file, its present value and the
    hosts, below a line that says why. `moves`: host -> versions before and after."""
    found: dict[str, dict[str, list[str]]] = {PINS_HEAD: {}, UNSET_HEAD: {}}
    for host, (before, after) in moves.items():
        data = inventory.get_host(host).data.dict()
        for key, value in _wrong_keys(data, subject, before, after):
            place = _place_of(inventory, path, host, key) if key in data else path
            now = f"now {data[key]!r}" if key in data else "now not set"
            line = f'  {place}: {key} = "{value}"  # {now}'
            found[PINS_HEAD if key in data else UNSET_HEAD].setdefault(line, []).append(host)
    return [
        text
        for head, lines in found.items()
        if lines
        for text in (head, *(f"{line}: {list_names(hosts)}" for line, hosts in lines.items()))
    ]


def _wrong_keys(
    data: Mapping[str, Any], subject: str, before: str, after: str
) -> Iterator[tuple[str, str]]:
    """Keys of a host that ask for another version than `after`, with the values that they need."""
    version = data.get(f"{subject}_version")
    if version and version != after:
        yield f"{subject}_version", after
    if subject != "driver":
        return
    branch, asked = branch_of(after), data.get("driver_branch")
    default = asked or version or branch_of(before) == branch  # otherwise the catalog chose it
    if str(asked or (branch if default else "")) != str(branch):
        yield "driver_branch", str(branch)


def _place_of(inventory: Any, path: str, host: str, key: str) -> str:
    """The file that sets a host's key, in pyinfra's order: the host's own data, then its groups."""
    if key in inventory.get_host_data(host):
        return path
    groups = [*reversed(inventory.get_host(host).groups), "all"]
    group = next((each for each in groups if key in inventory.get_group_data(each)), "all")
    line = re.compile(rf"^{key}\b", re.MULTILINE)
    for folder in (Path(path).parent, Path()):
        file = folder / "group_data" / f"{group}.py"
        if file.is_file() and line.search(file.read_text(errors="replace")):
            return str(file)
    return f"{path}, group {group}"
