"""Whether a record of a run is damaged, or of another version of gpufleet. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

SCHEMA = 1  # of run.json
UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")  # what pydantic says of a field


class OtherVersion(ValueError):
    """A record that is whole, and of a later schema."""


def require_schema(schema: Any) -> None:
    """Raises OtherVersion for a later one, ValueError for what is none."""
    if schema == SCHEMA:
        return
    later = isinstance(schema, int) and schema > SCHEMA
    raise (OtherVersion if later else ValueError)(f"its schema is {schema}")


def is_of_other_version(problem: object) -> bool:
    """Whether a record that cannot be used is whole, but has what this version does not know."""
    if isinstance(problem, ValidationError):
        return all(each["type"] in UNKNOWN for each in problem.errors())
    return isinstance(problem, OtherVersion)
