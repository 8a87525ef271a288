"""A run as metrics in Prometheus' text format, for the textfile collector of node_exporter.

Source of the format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from gpufleet.upgrade.host_state import FAILING, HostState, Phase
from gpufleet.upgrade.models import Plan

PREFIX = "gpufleet_upgrade"
READABLE = 0o644  # the collector is another user
SUFFIX = ".prom"  # the collector reads no other file
FIRST = f"# HELP {PREFIX}_".encode()  # bytes of a file of an earlier run


def metrics_text(
    plan: Plan, states: Mapping[str, HostState], inventory: str, *, running: bool
) -> str:
    """The metrics of a run. `running`: whether a process carries it out."""
    run = {"run": plan.run, "kind": plan.kind, "subject": plan.subject}
    counts = Counter(state.phase for state in states.values())
    out = sum(state.out_of_service for state in states.values())
    failed = sum(state.phase in FAILING for state in states.values())
    last = max((state.since for state in states.values()), default=0.0)
    families = [
        ("hosts", "Hosts of the run by state.",
         [({**run, "state": phase.value}, float(counts[phase])) for phase in Phase]),
        ("out_of_service", "Hosts that the run has taken out of service.", [(run, float(out))]),
        ("left_out", "Hosts that the run leaves out.", [(run, float(len(plan.left_out)))]),
        ("failures", "Hosts whose change failed.", [(run, float(failed))]),
        ("running", "Whether a process carries the run out.", [(run, float(running))]),
        ("info", "The run.", [({**run, "inventory": inventory}, 1.0)]),
        ("last_event_timestamp_seconds", "When the state of a host last changed.",
         [(run, last)]),
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


def refusal(path: Path) -> str:
    """Why metrics must not or cannot replace a file, or ""."""
    if path.suffix != SUFFIX:
        return f"its name does not end in {SUFFIX}"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    try:
        if not path.exists():
            return ""
        if not path.is_file():
            return "it is not a regular file"
        with path.open("rb") as file:
            start = file.read(len(FIRST))
    except OSError as error:
        return error.strerror or str(error)
    return "" if start in (b"", FIRST) else "the file there has no metrics of gpufleet upgrade"


def write_metrics(path: Path, text: str) -> None:
    """Put the file in its place, whole or not at all. Raises OSError, also where another program
    has written a file there since the start of the run."""
    if why := refusal(path):
        raise OSError(why)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            os.fchmod(file.fileno(), READABLE)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
