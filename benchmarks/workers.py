"""Measure `gpufleet apply --workers` on converged hosts: hosts per second, CPU, controller memory.

`python -m benchmarks.workers` writes a part of docs/explanation/benchmarks.md. Each sandbox host
has many names in the inventory: a name costs the controller a connection and a command, as a host
of its own would.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.circumstances import circumstances
from benchmarks.fleet import Fleet
from benchmarks.ours import GPUFLEET, Programs
from benchmarks.report import Circumstances, fill_parts, table
from benchmarks.timing import ROOT, RunFailed, timed
from gpufleet_sandbox import SandboxError
from gpufleet_sandbox.paths import cache_dir

PAGE = ROOT / "docs/explanation/benchmarks.md"
HOSTS = 4  # of the sandbox; its sshd takes 200 logins at once
NAMES, WORKERS = (40, 1000, 5000), (1, 2)
INVENTORY = """\
from gpufleet_sandbox.inventory import group_data, nodes

_hosts = [data for _, data in nodes({sandbox!r})]
_named = [(f"gpu-{{number:04}}", _hosts[number % len(_hosts)]) for number in range({names})]
gpu_nodes = (_named, group_data())
"""
HEAD = ("hosts", "workers", "wall, s", "hosts a second", "CPU, ms a host", "memory, MiB")
EXPLANATION = f"""\
`gpufleet apply --workers N` on converged hosts: {HOSTS} sandbox hosts, each under many names. Each
name costs a connection, the facts and a plan. CPU is that of all processes of the controller,
memory that of the largest one. [workers.md](../how-to/workers.md) says how to use them."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """A run over `names` hosts on `workers` processes; `wall` and `cpu` in seconds, of all
    processes together; `memory` in MiB, of the largest."""

    names: int
    workers: int
    wall: float
    cpu: float
    memory: float


def measure(
    fleet: Fleet, names: Sequence[int], workers: Sequence[int], progress: Callable[[str], None]
) -> list[Scaled]:
    """Each number of names with each number of workers."""
    fleet.grow(HOSTS)
    Programs(fleet.env, fleet.work).provision()
    found = []
    for count in names:
        inventory = fleet.work / f"workers-{count}.py"
        inventory.write_text(INVENTORY.format(sandbox=fleet.name, names=count))
        for number in workers:
            found.append(_run(fleet, inventory, count, number))
            progress(f"{count} hosts, workers: {number}: {found[-1].wall:.1f} s")
    return found


def _run(fleet: Fleet, inventory: Path, names: int, workers: int) -> Scaled:
    """Measure one run. Raises RunFailed if a host is not converged."""
    report = fleet.work / "workers.json"
    words: list[str | Path] = [GPUFLEET, "apply", inventory, "--yes", "--workers", str(workers)]
    run = timed(
        words, log=fleet.work / "workers.log", env={**fleet.env, "GPUFLEET_REPORT": str(report)}
    )
    states = [host["status"] for host in json.loads(report.read_text())["hosts"].values()]
    if states != ["converged"] * names:
        raise RunFailed(f"{states.count('converged')} of {names} hosts are converged")
    return Scaled(names, workers, run.wall, run.cpu, run.memory)


def page(about: Circumstances, found: Sequence[Scaled]) -> str:
    """The part `scale` of docs/explanation/benchmarks.md."""
    rows = [
        (
            str(each.names), str(each.workers), f"{each.wall:.1f}", f"{each.names / each.wall:.1f}",
            f"{each.cpu / each.names * 1000:.0f}", f"{each.memory:.0f}",
        )
        for each in found
    ]  # fmt: skip
    parts = ["## Thousands of hosts", *about.lines(), EXPLANATION, table(HEAD, rows)]
    return "\n\n".join(parts) + "\n"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers")
    parser.add_argument("--names", type=int, nargs="+", default=NAMES, metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS, metavar="N")
    parser.add_argument("--page", type=Path, default=PAGE, help="the file whose part to write")
    options = parser.parse_args(words)
    began, load = time.monotonic(), os.getloadavg()[0]

    def progress(message: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {message}", file=sys.stderr, flush=True)

    work = cache_dir() / "bench"
    work.mkdir(parents=True, exist_ok=True)
    fleet = Fleet("bench-workers", work, progress)
    try:
        found = measure(fleet, options.names, options.workers, progress)
    except (RunFailed, SandboxError) as error:
        print(f"benchmark stopped: {error}", file=sys.stderr)
        return 1
    finally:
        fleet.down()
    text = page(circumstances("benchmarks.workers", words, load), found)
    print(text)
    there = options.page.read_text() if options.page.exists() else ""
    options.page.write_text(fill_parts(there, {"scale": text}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
