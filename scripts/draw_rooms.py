"""The drawing of the rooms of gpufleet/ and their imports, as a Mermaid flowchart."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

EVERYWHERE = "core"  # imported by every room, so its arrows are left out


def imported_rooms(root: Path) -> dict[str, set[str]]:
    """Room -> the other rooms that its modules import, `core` left out."""
    rooms = {path.parent.name for path in (root / "gpufleet").glob("*/__init__.py")}
    found: dict[str, set[str]] = {room: set() for room in sorted(rooms)}
    for room in found:
        for path in (root / "gpufleet" / room).rglob("*.py"):
            found[room] |= set(_imports(path)) & rooms - {room, EVERYWHERE}
    return found


def _imports(path: Path) -> Iterator[str]:
    """The rooms that one file imports from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("gpufleet."))


def _reachable(start: str, imports: Mapping[str, set[str]]) -> set[str]:
    """Every room that `start` imports, directly or through others."""
    seen: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        room = waiting.pop()
        if room not in seen:
            seen.add(room)
            waiting += imports[room]
    return seen


def drawing(root: Path) -> str:
    """A fenced Mermaid flowchart. An arrow means "imports"; one that others imply is left out."""
    imports = imported_rooms(root)
    lines = ["```mermaid", "flowchart TD"]
    lines += [f"    {room}" for room in imports if room != EVERYWHERE]
    for room, others in imports.items():
        implied = {deep for other in others for deep in _reachable(other, imports)}
        lines += [f"    {room} --> {other}" for other in sorted(others - implied)]
    return "\n".join([*lines, "```"])
