"""The record on a host of the installation: its format, and how to read it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

SCHEMA = 1


class RecordPart(BaseModel):
    """A part of a record. Unknown keys are preserved; missing keys stay missing."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, populate_by_name=True)

    def as_json(self) -> dict[str, Any]:
        """The keys that were read or set, without defaults."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class RoleEntry(RecordPart):
    """The fields that every role records. Each role adds fields in its own package."""

    role: ClassVar[str]  # key of the entry

    version: str | None = None
    packages: dict[str, str] = {}  # name -> version, as installed
    added: list[str] = []  # packages that transactions of gpufleet installed
    held: bool = False

    @property
    def exists(self) -> bool:
        """True if the record has an entry of the role."""
        return bool(self.model_fields_set)

    @property
    def versions(self) -> set[str | None]:
        """Versions that the role's own packages have."""
        return {self.version}


AnyEntry = TypeVar("AnyEntry", bound=RoleEntry)


class HostRecord(RecordPart):
    """The record; `entry` gives the part of a role. It is empty if the host has no record."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    files: dict[str, str] = {}  # path -> sha256 of the content that gpufleet wrote
    history: list[dict[str, str | None]] = []
    _entries: dict[type[RoleEntry], RoleEntry] = PrivateAttr(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostRecord) and self.as_json() == other.as_json()

    @property
    def exists(self) -> bool:
        """True if the host has a record that is not empty."""
        return bool(self.model_fields_set)

    def entry(self, kind: type[AnyEntry]) -> AnyEntry:
        """The part of a role, empty if the record does not have it.

        Raises pydantic.ValidationError for a damaged part: see `trouble`.
        """
        if kind not in self._entries:
            there = (self.model_extra or {}).get(kind.role)
            self._entries[kind] = kind.model_validate({} if there is None else there)
        entry = self._entries[kind]
        assert isinstance(entry, kind)
        return entry

    def has(self, role: str) -> bool:
        """True if the record has a part of a role."""
        return bool((self.model_extra or {}).get(role))

    def trouble(self, kinds: Iterable[type[RoleEntry]]) -> str | None:
        """Why the part of one of these roles cannot be used, or None if all are usable."""
        for kind in kinds:
            try:
                self.entry(kind)
            except ValidationError as error:
                return _first(error, kind.role)
        return None


EMPTY_RECORD = HostRecord()


def read_record(text: str | bytes) -> HostRecord:
    """Read the record from a file's text. Raises ValueError with the reason if it is unusable."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is not valid JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("it is not valid JSON: its values are nested too deep") from error
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    schema = data.get("schema", SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        known = f"this version of gpufleet knows {SCHEMA}"
        raise ValueError(f"its schema is {str(schema)[:20]}, and {known}")
    try:
        return HostRecord.model_validate(data)
    except ValidationError as error:
        raise ValueError(_first(error)) from error


def _first(error: ValidationError, *inside: str) -> str:
    """The first error and its location."""
    first = error.errors()[0]
    where = ".".join([*inside, *(str(part) for part in first["loc"])])
    return f"{where}: {first['msg']}"
