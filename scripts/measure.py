"""How large the product is: lines, rooms, kinds of findings, tests.

    python -m scripts.measure

Lines are those of Python files that git tracks, as ruff formats them.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("gpufleet", "roles", "deploys")
MAX_FILE_LINES = 300
MAX_ROOM_LINES = 4000
SHOWN_ROOMS = 3


def count_lines(root: Path, names: Iterable[str]) -> dict[str, int]:
    """Lines of each Python file of these, by its path."""
    return {name: len((root / name).read_bytes().splitlines()) for name in names}


def sum_by_room(lines: Mapping[str, int]) -> Counter[str]:
    """Lines of each package of gpufleet/.

    Example: {"gpufleet/driver/plan.py": 290, "roles/node.py": 20} -> {"driver": 290}
    """
    rooms: Counter[str] = Counter()
    for name, count in lines.items():
        parts = name.split("/")
        if parts[0] == "gpufleet" and len(parts) > 2:
            rooms[parts[1]] += count
    return rooms


def format_report(lines: Mapping[str, int], finding_kinds: int) -> str:
    """The table, one figure a line. `lines`: of every tracked Python file."""
    product = {name: count for name, count in lines.items() if name.split("/")[0] in PRODUCT}
    tests = sum(count for name, count in lines.items() if name.startswith("tests/"))
    rooms = sum_by_room(product)
    largest = ", ".join(f"{name} {count}" for name, count in rooms.most_common(SHOWN_ROOMS))
    over = sum(count > MAX_ROOM_LINES for count in rooms.values())
    long = sum(count > MAX_FILE_LINES for count in product.values())
    return "\n".join([
        f"product Python   {sum(product.values())} lines in {len(product)} files",
        f"largest rooms    {largest}; {over} over {MAX_ROOM_LINES}",
        f"long files       {long} over {MAX_FILE_LINES} lines",
        f"finding kinds    {finding_kinds}",
        f"tests            {tests} lines",
    ])  # fmt: skip


def main() -> None:
    from scripts.finding_codes import codes

    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    print(format_report(count_lines(ROOT, names), len(codes())))


if __name__ == "__main__":
    main()
