"""The shape of the record on a host of what was installed there."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

SCHEMA = 1  # of the records that this version writes


class _Loose(BaseModel):
    """Keys that are not named here are of no interest to the check."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Role(_Loose):
    version: str | None = None
    packages: dict[str, str] = {}
    added: list[str] = []
    load: list[str] = []
    prerequisites: list[str] = []


class _Record(_Loose):
    driver: _Role | None = None
    toolkit: _Role | None = None
    exporter: _Role | None = None
    files: dict[str, str] = {}
    history: list[dict[str, str | None]] = []


def trouble_with(record: object) -> str:
    """Why a record, as it came out of JSON, cannot be used; "" where it can."""
    if not isinstance(record, dict):
        return "it is not a JSON object"
    schema = record.get("schema", SCHEMA)
    if not isinstance(schema, int) or schema > SCHEMA:
        return f"its schema is {str(schema)[:20]}, and this version of gpufleet knows {SCHEMA}"
    try:
        _Record.model_validate(record)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}"
    return ""
