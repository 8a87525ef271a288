"""A run as metrics in Prometheus' text format. Pure.

Source of the format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gpufleet.upgrade.progress import Progress
from gpufleet.upgrade.states import State

PREFIX = "gpufleet_upgrade"


def metrics_text(name: str, progress: Progress, inventory: str, *, running: bool) -> str:
    """The metrics of a run. `running`: whether a process carries it out."""
    plan = progress.plan
    run = {"run": name, "kind": plan.kind, "subject": plan.subject}
    states = Counter(progress.states.values())
    families = [
        ("hosts", "Hosts of the run by state.",
         [({**run, "state": state.value}, float(states[state])) for state in State]),
        ("out_of_service", "Hosts that the run has taken out of service.",
         [(run, float(progress.out_of_service))]),
        ("left_out", "Hosts that the run leaves out.", [(run, float(len(plan.left_out)))]),
        ("failures", "Hosts whose change failed.", [(run, float(progress.failures))]),
        ("running", "Whether a process carries the run out.", [(run, float(running))]),
        ("info", "The run, and its last event.",
         [({**run, "inventory": inventory, "event": progress.run}, 1.0)]),
        ("last_event_timestamp_seconds", "When something was last written down about a host.",
         [(run, max(progress.since.values(), default=0.0))]),
    ]  # fmt: skip
    return "".join(_family(*each) for each in families)


def _family(name: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> str:
    full = f"{PREFIX}_{name}"
    lines = [f"# HELP {full} {about}", f"# TYPE {full} gauge"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{full}{{{inner}}} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
