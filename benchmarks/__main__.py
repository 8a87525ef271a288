"""`make bench`: gpufleet, the floor and Ansible side by side on sandbox hosts."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    cluster,
    converged,
    creation,
    first,
    many,
    real_driver,
    upgrade,
    upgrade_hosts,
)
from benchmarks.ansible_runs import Ansible
from benchmarks.budget import verdicts
from benchmarks.circumstances import circumstances
from benchmarks.fleet import Fleet
from benchmarks.ours import Programs
from benchmarks.report import fill_parts, page
from benchmarks.timing import ROOT, RunFailed
from gpufleet_sandbox import SandboxError
from gpufleet_sandbox.paths import cache_dir

PAGE = ROOT / "docs/explanation/benchmarks.md"
FIRST_ROUNDS = {1: 2, 10: 1}  # hosts: rounds; with more, all hosts wait for the same processors


def main(words: Sequence[str]) -> int:
    """Measure, print, write parts of the page; exit status 1 where a budget is missed."""
    options = _options(words)
    began = time.monotonic()

    def progress(message: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {message}", file=sys.stderr, flush=True)

    work = cache_dir() / "bench"
    work.mkdir(parents=True, exist_ok=True)
    fleet = Fleet(options.name, work, progress)
    try:
        return _measure(options, fleet, words)
    except (RunFailed, SandboxError) as error:
        print(f"benchmark stopped: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.keep:
            fleet.down()


def _measure(options: argparse.Namespace, fleet: Fleet, words: Sequence[str]) -> int:
    load = os.getloadavg()[0]
    programs = Programs(fleet.env, fleet.work)
    ansible = None if options.no_ansible else Ansible(fleet.work / "ansible-venv", fleet.work)
    if ansible:
        fleet.progress("installing ansible-core")
        ansible.install()
    firsts, rows, hosts = [], [], []
    if not (options.no_first or options.no_real_driver):
        real = real_driver.measure(f"{options.name}-real", fleet.work, fleet.progress)
        firsts += [real] if real else []
    for count in sorted(set(options.hosts)):
        hosts = fleet.grow(count)
        rounds = 0 if options.no_first else FIRST_ROUNDS.get(count, 0)
        if rounds:
            firsts.append(first.measure(fleet, hosts, programs, rounds, fleet.progress))
        else:
            programs.provision()
        rows.append(converged.measure(hosts, programs, ansible, fleet.progress))
    names = []
    if options.names:
        names = many.measure(options.name, hosts, programs, fleet.progress, options.names)
    clusters = []
    if not options.no_cluster:
        clusters.append(cluster.measure(f"{options.name}-cluster", fleet.work, fleet.progress))
    creations = []
    if not options.no_creation:
        name = f"{options.name}-creation"
        creations.append(creation.measure(name, fleet.work, fleet.progress))
    upgrades = []
    if not options.no_upgrade:
        name, (nodes, pods) = f"{options.name}-upgrade", options.upgrade
        upgrades.append(upgrade.measure(name, fleet.work, fleet.progress, nodes, pods))
    owns = []
    if not options.no_upgrade_host:
        owns.append(upgrade_hosts.measure(f"{options.name}-own", fleet.work, fleet.progress))
    judged = verdicts(rows, firsts, clusters, creations, upgrades, owns, names)
    others = [ansible.version] if ansible else []
    about = circumstances("benchmarks", words, load, others)
    parts = {
        "converged": page(about, rows, [], verdicts(rows, [])),
        "names": page(about, [], [], verdicts([], [], many=names), many=names),
        "first": page(about, [], firsts, verdicts([], firsts)),
        "cluster": page(about, [], [], verdicts([], [], clusters), clusters),
        "creation": page(
            about, [], [], verdicts([], [], creations=creations), creations=creations
        ),
        "upgrade": page(about, [], [], verdicts([], [], upgrades=upgrades), upgrades=upgrades),
        "upgrade-host": page(about, [], [], verdicts([], [], owns=owns), owns=owns),
    }  # fmt: skip
    print("\n".join(filter(None, parts.values())))
    options.page.parent.mkdir(parents=True, exist_ok=True)
    there = options.page.read_text() if options.page.exists() else ""
    options.page.write_text(fill_parts(there, parts))
    return 0 if all(verdict.kept for verdict in judged) else 1


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="*", default=[1, 10, 40], metavar="N")
    parser.add_argument(
        "--names", type=int, default=many.NAMES, metavar="N",
        help="names for the most hosts, which gpufleet status reads; 0: without",
    )  # fmt: skip
    parser.add_argument("--name", default="bench", help="the sandbox to use")
    parser.add_argument("--keep", action="store_true", help="leave the sandbox up")
    parser.add_argument("--no-ansible", action="store_true", help="without Ansible's minutes")
    parser.add_argument("--no-first", action="store_true", help="without first installations")
    parser.add_argument("--no-real-driver", action="store_true", help="without DKMS's minutes")
    parser.add_argument("--no-cluster", action="store_true", help="without the control plane")
    parser.add_argument("--no-creation", action="store_true", help="without a kubeadm cluster")
    parser.add_argument("--no-upgrade", action="store_true", help="without a simulated fleet")
    parser.add_argument("--no-upgrade-host", action="store_true", help="without its own part")
    parser.add_argument(
        "--upgrade", type=int, nargs=2, metavar=("NODES", "PODS"),
        default=[upgrade.NODES, upgrade.PODS], help="size of the simulated fleet",
    )  # fmt: skip
    parser.add_argument("--page", type=Path, default=PAGE, help="the file whose parts to write")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
