"""Metrics in the text format of Prometheus, for node_exporter's textfile collector.

Source of the format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gpufleet.core.private_file import replace_file

Sample = tuple[Mapping[str, str], float]  # labels, value
READABLE = 0o644  # the collector runs as another user
SUFFIX = ".prom"  # the collector ignores other files


def gauges_text(prefix: str, families: Iterable[tuple[str, str, Iterable[Sample]]]) -> str:
    """The text of gauges. `families`: name without prefix, help text, samples."""
    return "".join(_family(f"{prefix}_{name}", *more) for name, *more in families)  # type: ignore[arg-type]


def _family(name: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{inner}}} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def metrics_refusal(path: Path, prefix: str) -> str | None:
    """Why metrics of that prefix cannot or must not replace a file, or None."""
    if path.suffix != SUFFIX:
        return f"its name does not end in {SUFFIX}"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    first = f"# HELP {prefix}_".encode()
    try:
        if not path.exists():
            return None
        if not path.is_file():
            return "it is not a regular file"
        with path.open("rb") as file:
            start = file.read(len(first))
    except OSError as error:
        return error.strerror or str(error)
    return None if start in (b"", first) else f"the file there has no metrics of {prefix}"


def write_metrics(path: Path, text: str, prefix: str) -> None:
    """Replace the file atomically. Raises OSError, also if another program has written to the path
    since the run started."""
    if why := metrics_refusal(path, prefix):
        raise OSError(why)
    replace_file(path, text.encode(errors="backslashreplace"), READABLE)
