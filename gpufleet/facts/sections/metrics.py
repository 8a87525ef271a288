"""Parses the answers of exporters of DCGM's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpufleet.facts.health import ExporterAnswer
from gpufleet.facts.sections import split_records


def parse_metrics(lines: Sequence[str]) -> tuple[ExporterAnswer, ...]:
    """The answers, one for each port that an exporter listens on. Raises ValueError for a malformed
    line."""
    found: list[ExporterAnswer] = []
    for word, rest in split_records(lines):
        if word == "exporter":
            age, port = map(int, rest.split())
            found.append(ExporterAnswer(age, port))
        elif word == "gpu" and found:
            found[-1] = replace(found[-1], gpus=found[-1].gpus | {rest})
        elif word == "answer" and found:
            status, samples = map(int, rest.split())
            found[-1] = replace(found[-1], status=status, samples=samples)
        else:
            raise ValueError(f"unexpected line {word!r}")
    return tuple(found)
