"""The measurements as people read them: benchmarks.md, and on the terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.cluster import ConvergedCluster
from benchmarks.converged import Converged
from benchmarks.creation import CREATING, Creation
from benchmarks.first import First
from benchmarks.many import Many
from benchmarks.stats import Summary, Verdict, digits, growth
from benchmarks.upgrade import Drained
from benchmarks.upgrade_hosts import Own


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Where and how the figures came about."""

    command: str
    date: str
    machine: str  # cores, memory, kernel
    versions: str
    load: tuple[float, float]  # of one minute, before and after

    def lines(self) -> list[str]:
        """The head of a page."""
        return [
            f"Written by `{self.command}` on {self.date}. Do not edit: run it again.",
            f"Machine: {self.machine}. {self.versions}. Load of one minute before and after: "
            f"{self.load[0]:.1f} and {self.load[1]:.1f}.",
        ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


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
    """docs/explanation/benchmarks.md, whole."""
    parts = [
        "# Benchmarks",
        *about.lines(),
        EXPLANATION,
    ]
    if converged:
        parts += [
            "## Converged hosts",
            "Seconds of wall time, minimum / median / maximum.",
            table(_HEAD, [_row(row) for row in converged]),
            "Ratios of the medians.",
            table(_RATIO_HEAD, [_ratios(row) for row in converged]),
            _memory(converged),
        ]
    if many:
        names = [_many(row) for row in many]
        parts += ["## gpufleet status with many names", MANY, table(_MANY_HEAD, names)]
    if first:
        parts += ["## First installation", table(_FIRST_HEAD, [_first(row) for row in first])]
        parts += [text for row in first for text in _operations(row)]
    if clusters:
        parts += [
            "## Converged cluster",
            CLUSTER,
            table(_CLUSTER_HEAD, [_cluster(c) for c in clusters]),
        ]
    for creation in creations:
        head = ("phase", "s")
        rows = [
            *creation.phases,
            ("whole command", creation.ours),
            (f"of it {', '.join(CREATING)}", creation.creating),
            ("script", creation.typed),
        ]
        lines = [(name, digits(seconds)) for name, seconds in rows]
        parts += [f"## Cluster on {creation.hosts} bare hosts", CREATION, table(head, lines)]
    if upgrades:
        fleets = [_upgrade(row) for row in upgrades]
        parts += ["## Upgrade of a simulated fleet", UPGRADE, table(_UPGRADE_HEAD, fleets)]
    for own in owns:
        spent = [("a run, from its first event to its last", own.whole), ("our own part", own.ours)]
        runs = [(name, _counted(summary)) for name, summary in spent]
        parts += ["## Upgrade of an idle host", OWN, table(("", "s"), runs)]
        parts += _shown(own.operations, "of all steps of the last run")
    parts += ["## Budget", "```text\n" + "\n".join(str(verdict) for verdict in verdicts) + "\n```"]
    return "\n\n".join(parts) + "\n"


EXPLANATION = """\
The hosts are containers on this machine and share its processors with the programs that are
timed: what the hosts compute counts for all three. Start, floor and gpufleet run in turn.

- **gpufleet**: `pyinfra -y inventories/sandbox.py deploys/gpu_node.py`, nothing to change.
- **floor** (`benchmarks/floor.py`): the same SSH library in a fresh process, one connection and
  gpufleet's fact command on each host, all hosts at once, the answer thrown away.
- **interpreter start**: `pyinfra --version`.
- **Ansible**: `benchmarks/ansible/gpu_node.yml`, which says why it is fair; forks = hosts,
  pipelining, connections kept open, no fact gathering.
- **apt alone**: the commands that gpufleet gave apt, by apt's own log, typed in over SSH on
  equally bare hosts; the slowest host counts. The sandbox's driver compiles in a second and is
  fetched from the machine itself, so what is not apt's (start, look-up, services, the restart of
  docker, the CDI spec) weighs more there than beside a real driver.
- **Debian's driver**: the archive's real packages and DKMS's real build, on a host whose kernel
  is the archive's (`driver_source = "distro"`); without the toolkit, which Debian has not."""

_HEAD = ("hosts", "gpufleet", "gpufleet status", "floor", "interpreter start", "Ansible",
         "commands per host")  # fmt: skip
_RATIO_HEAD = (
    "hosts", "gpufleet / floor", "less the start", "Ansible / gpufleet",
    "CPU s: gpufleet", "CPU s: floor", "memory, MiB",
)  # fmt: skip
CLUSTER = """\
`pyinfra -y inventories/cluster.py deploys/gpu_cluster.py` on a real control plane with nodes
simulated by kwok; charts are fakes. Seconds of wall time, minimum / median / maximum."""
CREATION = """\
`gpufleet cluster create` on bare hosts, packages and images in the sandbox's mirror: preflight,
driver, toolkit, Kubernetes, device plugin, checks. The script (`benchmarks/creation.py`) types
what changes the hosts and nothing else: apt's commands by its own log, the files that gpufleet
wrote, the same reboot, kubeadm, flannel, helm; it ends when every node advertises its GPUs, as the
phase "GPU stack" does. It has no counterpart of the phases "Preflight" and "Checks"."""
MANY = """\
`gpufleet status INVENTORY --drift` and the floor with several names for each host: every name is a
connection and a command of its own. Seconds of wall time, minimum / median / maximum."""
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
SHOWN_SECONDS = 0.1
_FIRST_HEAD = ("driver", "hosts", "gpufleet, s", "apt alone, s", "ratio", "difference, s")


def _row(row: Converged) -> list[str]:
    ansible = _counted(row.ansible) if row.ansible else "not run"
    times = map(_counted, (row.ours, row.status, row.floor, row.start))
    return [str(row.hosts), *times, ansible, str(row.commands)]


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
    ]  # fmt: skip


def _many(row: Many) -> list[str]:
    return [
        str(row.names), str(row.hosts), _counted(row.status), _counted(row.floor),
        digits(row.status.middle / row.floor.middle), digits(row.status_cpu.middle),
        digits(row.floor_cpu.middle), digits(row.memory),
    ]  # fmt: skip


def _memory(rows: Sequence[Converged]) -> str:
    grown = growth({row.hosts: row.memory for row in rows})
    if grown is None:
        return "Growth of the controller's memory per host: needs two numbers of hosts."
    return f"The controller's memory grows by {digits(grown)} MiB with each host."


def _first(row: First) -> list[str]:
    ours, apt = row.ours.middle, row.manager.middle
    times = [_counted(row.ours), _counted(row.manager)]
    return [row.driver, str(row.hosts), *times, digits(ours / apt), digits(ours - apt)]


def _operations(row: First) -> tuple[str, str]:
    """Where the time of a first installation goes."""
    return _shown(row.operations, f"in one more run, {row.driver} driver, hosts: {row.hosts}")


def _shown(operations: Sequence[tuple[str, float]], of: str) -> tuple[str, str]:
    """Operations by time; what takes next to nothing is summed up."""
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
