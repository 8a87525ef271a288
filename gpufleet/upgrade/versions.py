"""Whether a record of a run is damaged, or of another version of gpufleet. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from gpufleet.core.visible import one_line

SCHEMA = 5  # of run.json and record.jsonl; a new one for each change of what they may have
UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument", "literal_error")  # by pydantic
LONGEST = 200  # characters of a problem, which may quote the record


class OtherVersion(ValueError):
    """A record that is whole, and has what this version does not know."""


def require_schema(schema: Any) -> None:
    """Raises OtherVersion for a later one, ValueError for what is none."""
    if not isinstance(schema, int) or schema < 1:
        raise ValueError(f"its schema is {schema!r}")
    if schema > SCHEMA:
        raise OtherVersion(f"its schema is {schema}; this version knows {SCHEMA} and earlier ones")


def is_of_other_version(problem: object) -> bool:
    """Whether a record that cannot be used is whole, but has what this version does not know."""
    if isinstance(problem, ValidationError):
        return all(each["type"] in UNKNOWN for each in problem.errors())
    return isinstance(problem, OtherVersion)


def problem_of(problem: object) -> str:
    """What is wrong with a record, on one line."""
    if isinstance(problem, ValidationError):
        first = problem.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = one_line(str(problem))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
