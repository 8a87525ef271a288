"""The measurements as people read them: in benchmarks.md, and on the terminal. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cluster import ConvergedCluster
from benchmarks.converged import Converged
from benchmarks.creation import CREATING, Creation
from benchmarks.first import First
from benchmarks.many import Many
from benchmarks.stats import Summary, Verdict, digits, growth
from benchmarks.upgrade import Drained
from benchmarks.upgrade_hosts import Own
from scripts.generate_docs import with_block


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The machine, versions and command behind the figures."""

    command: str
    date: str
    machine: str  # cores, memory, kernel
    versions: str
    load: tuple[float, float]  # of one minute, before and after

    def lines(self) -> list[str]:
        """The head of a part of a page."""
        return [
            f"Written by `{self.command}` on {self.date}. {self.machine}. {self.versions}. "
            f"Load {self.load[0]:.1f} to {self.load[1]:.1f}."
        ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    first, *others = ("| " + " | ".join(line) + " |" for line in (head, *rows))
    return "\n".join([first, "|---" + "|---:" * (len(head) - 1) + "|", *others])


def page(
    about: Circumstances,
    converged: Sequence[Converged],
    first: Sequence[First],
    verdicts: Sequence[Verdict],
    clusters: Sequence[ConvergedCluster] = (),
    creations: Sequence[Creation] = (),
    upgrades: Sequence[Drained] = (),
    owns: Sequence[Own] = (),
    many: Sequence[Many] = (),
) -> str:
    """What was measured, each with its circumstances, and the budget; empty if nothing was."""
    sections: list[tuple[str, ...]] = []
    if converged:
        sections.append((
            "## Converged hosts", table(_HEAD, [_row(row) for row in converged]),
            table(_RATIO_HEAD, [_ratios(row) for row in converged]),
            *_memory(converged),
        ))  # fmt: skip
    if many:
        names = [_many(row) for row in many]
        sections.append(("## Status of many names", MANY, table(_MANY_HEAD, names)))
    if first:
        rows = [_first(row) for row in first]
        spent = [text for row in first if row.hosts == 1 for text in _operations(row)]
        sections.append(("## First installation", table(_FIRST_HEAD, rows), *spent))
    if clusters:
        rows = [_cluster(row) for row in clusters]
        sections.append(("## Converged cluster", CLUSTER, table(_CLUSTER_HEAD, rows)))
    for creation in creations:
        phases = [
            *creation.phases,
            ("whole command", creation.ours),
            (f"of it {', '.join(CREATING)}", creation.creating),
            ("script", creation.typed),
        ]
        lines = [(name, digits(seconds)) for name, seconds in phases]
        title = f"## Cluster on {creation.hosts} bare hosts"
        sections.append((title, CREATION, table(("phase", "s"), lines)))
    if upgrades:
        fleets = [_upgrade(row) for row in upgrades]
        sections.append(("## Upgrade of a simulated fleet", UPGRADE, table(_UPGRADE_HEAD, fleets)))
    for own in owns:
        runs = [
            ("a run, from its first event to its last", _counted(own.whole)),
            ("our own part", _counted(own.ours)),
        ]
        steps = _shown(own.operations, "of all steps of the last run")
        sections.append(("## Upgrade of an idle host", OWN, table(("", "s"), runs), *steps))
    if not sections:
        return ""
    parts = [text for title, *texts in sections for text in (title, *about.lines(), *texts)]
    if verdicts:
        parts.append("```text\n" + "\n".join(str(verdict) for verdict in verdicts) + "\n```")
    return "\n\n".join(parts) + "\n"


def fill_parts(text: str, parts: Mapping[str, str]) -> str:
    """A page with each part that is not empty between its marks, at its end if it has none yet."""
    for name, part in parts.items():
        marks = (f"<!-- {name}: begin (make bench) -->", f"<!-- {name}: end -->")
        if part and marks[0] not in text:
            text += f"\n{marks[0]}\n{marks[1]}\n"
        text = with_block(text, marks, part.strip("\n")) if part else text
    return text


_HEAD = ("hosts", "gpufleet", "gpufleet status", "gpufleet doctor", "floor",
         "doctor's floor", "interpreter start", "Ansible", "commands per host")  # fmt: skip
_RATIO_HEAD = (
    "hosts", "gpufleet / floor", "less the start", "Ansible / gpufleet",
    "CPU s: gpufleet", "CPU s: floor", "memory, MiB", "prolog, s",
)  # fmt: skip
CLUSTER = """\
`pyinfra -y inventories/cluster.py deploys/gpu_cluster.py` on a real control plane, nodes simulated
by kwok, fake charts."""
CREATION = """\
`gpufleet cluster create` on bare hosts, packages and images in the sandbox's mirror. The script
(`benchmarks/creation.py`) repeats only the commands that change the hosts: those in apt's log, the
files that gpufleet wrote, the reboot, kubeadm, flannel, helm. Like the phase "GPU stack" it ends
when every node advertises its GPUs; it has no "Preflight" and no "Checks"."""
MANY = """\
`gpufleet status INVENTORY` and the floor with several names for each host: each name costs
a connection and a command."""
_MANY_HEAD = (
    "names", "hosts", "gpufleet status", "floor", "ratio", "CPU s: status", "CPU s: floor",
    "memory, MiB",
)  # fmt: skip
OWN = """\
`gpufleet upgrade start inventories/sandbox.py --to VERSION` on one host without work, to a version
and back: plan, prepare, drain, change, checks, return. Our own part is what is left without the
operations of the package manager (`FOREIGN` in `benchmarks/upgrade_hosts.py`) and reboots; the
reload of the modules counts."""
UPGRADE = """\
The product plans a run over all nodes, prepares and drains half of them, which all pods are on: a
real control plane, nodes and pods simulated by kwok, Deployments of 50 replicas whose budgets allow
a tenth to be unavailable, every third with GPUs. What the hosts say of themselves is a captured
answer; steps on hosts take no time. The controller and the control plane share the cores; nodes
renew their Leases every 100 s, a kubelet does every 10. NVIDIA measured 5 evictions a second for
NVSentinel with 11,683 pods of 1,503 nodes (39 minutes)."""
_UPGRADE_HEAD = (
    "Kubernetes", "nodes", "planned, s", "drained", "pods", "evictions, s", "evictions/s",
    "CPU ms per eviction", "memory, MiB", "budgets: looks", "broken",
)  # fmt: skip
_CLUSTER_HEAD = ("Kubernetes", "nodes", "gpu_cluster, nothing to change", "first installation")
SHOWN_SECONDS = 0.5
_FIRST_HEAD = ("driver", "hosts", "gpufleet, s", "apt alone, s", "ratio", "difference, s")


def _row(row: Converged) -> list[str]:
    ansible = _counted(row.ansible) if row.ansible else "not run"
    summaries = (row.ours, row.status, row.doctor, row.floor, row.doctor_floor, row.start)
    return [str(row.hosts), *map(_counted, summaries), ansible, str(row.commands)]


def _counted(summary: Summary) -> str:
    if summary.count == 1:
        return f"{digits(summary.middle)} (1 run)"
    return f"{summary} ({summary.count} runs)"


def _ratios(row: Converged) -> list[str]:
    ours, floor = row.ours.middle, row.floor.middle
    faster = digits(row.ansible.middle / ours) if row.ansible else "not run"
    return [
        str(row.hosts), digits(ours / floor), digits((ours - row.start.middle) / floor), faster,
        digits(row.ours_cpu.middle), digits(row.floor_cpu.middle), digits(row.memory),
        _counted(row.prolog),
    ]  # fmt: skip


def _many(row: Many) -> list[str]:
    return [
        str(row.names), str(row.hosts), _counted(row.status), _counted(row.floor),
        digits(row.status.middle / row.floor.middle), digits(row.status_cpu.middle),
        digits(row.floor_cpu.middle), digits(row.memory),
    ]  # fmt: skip


def _memory(rows: Sequence[Converged]) -> list[str]:
    """What a host more costs; two numbers of hosts show it."""
    grown = growth({row.hosts: row.memory for row in rows})
    if grown is None:
        return []
    return [f"The controller's memory grows by {digits(grown)} MiB with each host."]


def _first(row: First) -> list[str]:
    ours, apt = row.ours.middle, row.manager.middle
    times = [_counted(row.ours), _counted(row.manager)]
    return [row.driver, str(row.hosts), *times, digits(ours / apt), digits(ours - apt)]


def _operations(row: First) -> tuple[str, str]:
    """The operations of a first installation by time."""
    return _shown(row.operations, f"in one more run, {row.driver} driver, hosts: {row.hosts}")


def _shown(operations: Sequence[tuple[str, float]], of: str) -> tuple[str, str]:
    """Operations by time. Those below SHOWN_SECONDS are summed up."""
    shown = [(name, spent) for name, spent in operations if spent >= SHOWN_SECONDS]
    rest = sum(spent for _, spent in operations) - sum(spent for _, spent in shown)
    lines = [
        *((name.replace(" | ", ": "), spent) for name, spent in shown),
        (f"the other {len(operations) - len(shown)}", rest),
    ]
    title = f"Seconds of each operation {of}."
    return title, table(("operation", "s"), [(name, digits(spent)) for name, spent in lines])


def _cluster(row: ConvergedCluster) -> list[str]:
    return [row.kubernetes, str(row.nodes), _counted(row.ours), digits(row.first)]


def _upgrade(row: Drained) -> list[str]:
    figures = (row.evict, row.rate, 1000 * row.cpu / row.pods, row.memory)
    return [
        row.kubernetes, str(row.nodes), digits(row.plan), str(row.drained), str(row.pods),
        *map(digits, figures), str(row.looks), str(row.broken),
    ]  # fmt: skip
