"""Findings that the inventory accepts until a date: the data key `accepted_findings`. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from gpufleet.core.findings import KNOWN_KINDS, Finding, Severity, finding_modules
from gpufleet.core.settings import RoleSettings
from gpufleet.core.visible import one_line, printed_value

_UNTIL = re.compile(r"until (?P<day>\d{4}-\d{2}-\d{2})(, ?\S.*)?", re.ASCII)
_FORM = '"until YYYY-MM-DD", then a comma and a note if any: "until 2027-03-31, OPS-12"'


def _day(value: str) -> date:
    """Raises ValueError."""
    found = _UNTIL.fullmatch(value)
    if not found:
        raise ValueError(f"has {value!r}, which must be {_FORM}")
    try:
        return date.fromisoformat(found["day"])
    except ValueError as error:
        raise ValueError(f"has {value!r}, which is no day of the calendar") from error


def _check(accepted: Any) -> Any:
    if not isinstance(accepted, Mapping):
        raise ValueError('must map codes to days, as in {"GF103": "until 2027-03-31, OPS-12"}')
    if accepted:
        finding_modules(sys.modules["gpufleet"])
    problems = [_problem(code, value) for code, value in accepted.items()]
    if any(problems):
        raise ValueError("; and ".join(filter(None, problems)))
    return accepted


def _problem(code: object, value: object) -> str | None:
    """Why an entry is no acceptance of a finding, or None."""
    kind = KNOWN_KINDS.get(code) if isinstance(code, str) else None
    if kind is None:
        return f"has {printed_value(code)}, which is no code of a finding, such as GF103"
    if kind.severity is Severity.BLOCKER:
        return f"has {code}, a blocker: only warnings and infos can be accepted"
    if not isinstance(value, str):
        return f"has {printed_value(value)}, which must be {_FORM}"
    try:
        _day(value)
    except ValueError as error:
        return str(error)
    return None


class AcceptedFindings(RoleSettings):
    """Findings of a host or cluster that are known and accepted."""

    prefix = "accepted_"
    reserved = False

    findings: Annotated[dict[str, str], BeforeValidator(_check)] = Field(
        default_factory=dict,
        description="Warnings and infos to hide until a date: code of the finding -> "
        "`until YYYY-MM-DD`, optionally with a comma and a note.",
    )


NOTHING_ACCEPTED = AcceptedFindings.model_construct(findings={})


def accepted_of(data: Mapping[str, Any]) -> AcceptedFindings:
    """The accepted findings in a host's data. Empty if the data is invalid: the settings report
    that."""
    try:
        return AcceptedFindings(findings=data.get("accepted_findings", {}))
    except ValueError:
        return NOTHING_ACCEPTED


def split_accepted(
    found: Iterable[Finding], accepted: AcceptedFindings, today: date
) -> tuple[list[Finding], list[Finding]]:
    """The findings to show, and the findings that are accepted today. A blocker is always shown."""
    shown: list[Finding] = []
    hidden: list[Finding] = []
    for each in found:
        value = accepted.findings.get(each.code)
        if value is None or each.blocks:
            shown.append(each)
        elif today <= _day(value):
            hidden.append(each)
        else:
            over = f"Its acceptance has ended: {one_line(value)} (accepted_findings)."
            shown.append(replace(each, remedy=f"{each.remedy} {over}"))
    return shown, hidden
