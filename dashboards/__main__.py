"""`python -m dashboards`: write the dashboards' JSON.

With `--check`, nothing is written, and the exit status is 1 if a file is out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dashboards import ALL, FOLDER
from dashboards.grafana import text


def files() -> dict[str, str]:
    """File name -> its text."""
    return {f"{dashboard.name}.json": text(dashboard) for dashboard in ALL}


def stale(folder: Path) -> list[str]:
    """Names of files that are missing, out of date, or without a dashboard."""
    wanted = files()
    there = {path.name: path.read_text() for path in folder.glob("*.json")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def write(folder: Path) -> list[str]:
    """Update the folder; returns the names of the changed files."""
    changed, wanted = stale(folder), files()
    folder.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in wanted:
            (folder / name).write_text(wanted[name])
        else:
            (folder / name).unlink()
    return changed


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(words).check
    names = stale(FOLDER) if check else write(FOLDER)
    for name in names:
        print(f"{'stale' if check else 'written'}: {name}")
    return 1 if names and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
