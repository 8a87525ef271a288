"""Verdicts and hosts in depth as JSON, which status/doctor.schema.json describes. Pure."""

from __future__ import annotations

from typing import Any

from gpufleet.doctor.export import next_steps, step_command
from gpufleet.doctor.models import CheckOutcome, JudgedFleet, SubjectVerdict
from gpufleet.status.export import document_head


def doctor_json(judged: JudgedFleet, now: int) -> dict[str, Any]:
    """The document of `gpufleet doctor --json`: every host in depth, with its verdict."""
    return {
        **document_head(judged.inventory, now),
        "verdict": judged.verdict.value,
        "hosts": {
            found.name: {**_verdict(found, judged.inventory), **detail.as_dict()}
            for found, detail in zip(judged.hosts, judged.details, strict=True)
        },
        "clusters": {found.name: _verdict(found, judged.inventory) for found in judged.clusters},
    }


def _verdict(found: SubjectVerdict, inventory: str) -> dict[str, Any]:
    """The keys of a host or cluster: its verdict, the causes with next steps, every check."""
    return {
        "verdict": found.verdict.value,
        "causes": [_cause(each, found, inventory) for each in found.causes],
        "checks": [_check(each) for each in found.results],
    }


def _cause(cause: CheckOutcome, found: SubjectVerdict, inventory: str) -> dict[str, Any]:
    return {
        **_check(cause),
        "remedy": cause.remedy or None,
        "consequences": list(found.consequences_of(cause)),
        "steps": [
            {
                "id": name,
                "does": step.does,
                "command": step_command(step, inventory, found, cause),
                "runs_on": step.runs_on,
                "interrupts": step.interrupts,
            }
            for name, step in next_steps(cause)
        ],
    }


def _check(result: CheckOutcome) -> dict[str, Any]:
    return {
        "check": result.check,
        "verdict": result.verdict.value,
        "gpu": result.gpu or None,
        "read": result.read,
        "cause": result.cause or None,
        "code": result.code or None,
        "follows": result.follows or None,
    }
