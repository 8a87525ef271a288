"""The report of a worker, which may be on another machine: checked before it is used. Pure."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)
from typing_extensions import Self

from gpufleet.core.runtime_state import RuntimeState
from gpufleet.core.visible import indented, one_line
from gpufleet.run.report import BAD, HostReport, Status

OURS = frozenset(each.name for each in fields(HostReport))
MOST_CHANGES, LONGEST = 10**6, 10**8  # of a host; seconds


def _whole(movement: dict[str, str | None]) -> dict[str, str | None]:
    if len(movement) == 1:
        raise ValueError("before and after belong together")
    return movement


def _writable(value: JsonValue) -> JsonValue:
    """JSON has no NaN and no infinity, Python writes no number of more than 4300 digits."""
    json.dumps(value, allow_nan=False)
    return value


Line = Annotated[str, AfterValidator(one_line)]
Text = Annotated[str, AfterValidator(indented)]
Movement = Annotated[dict[Literal["before", "after"], Line | None], AfterValidator(_whole)]
Plain = Annotated[JsonValue, AfterValidator(_writable)]


class _Checked(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Finding(_Checked):
    code: Annotated[str, StringConstraints(pattern=r"^GF[0-9]{3}$")]
    severity: Literal["info", "warning", "blocker"]
    message: Text
    remedy: Text


class _Plan(_Checked, extra="allow"):
    __pydantic_extra__: dict[str, Plain]
    steps: list[Text]
    versions: dict[Line, Movement] = {}
    leaves: bool = False


class _Host(_Checked, extra="allow"):
    """report.schema.json; what has no field here is the version of a role."""

    __pydantic_extra__: dict[str, Movement]
    kind: Literal["node", "cluster"]
    status: Status
    changed: Annotated[int, Field(ge=0, le=MOST_CHANGES)]
    failed: bool
    runtimes: dict[Line, RuntimeState]
    releases: dict[Line, Movement]
    needs: list[Line]
    findings: list[_Finding]
    errors: list[Text]
    plan: _Plan
    seconds: Annotated[float, Field(ge=0, le=LONGEST)]

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.failed != (self.status in BAD):
            raise ValueError(f"failed is {self.failed} with the status {self.status}")
        if not self.failed and (self.changed > 0) != (self.status in ("changed", "planned")):
            raise ValueError(f"{self.changed} changes with the status {self.status}")
        blocks = any(each.severity == "blocker" for each in self.findings)
        if blocks and not self.failed and not self.errors:  # which a deploy may ignore
            raise ValueError(f"a blocker with the status {self.status}")
        return self

    @model_validator(mode="after")
    def _has_no_field_of_ours(self) -> Self:
        if taken := OURS & self.__pydantic_extra__.keys():
            raise ValueError(f"{min(taken)} is no role")
        return self


class Received(_Checked, extra="ignore"):
    """What a run reads of the report of a part."""

    version: Literal[1] = Field(alias="schema")
    exit_status: Annotated[int, Field(ge=0, le=255)]
    dry: bool
    completed: bool
    hosts: dict[str, _Host]

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        wrong: Status = "changed" if self.dry else "planned"
        for name, host in self.hosts.items():
            if host.status == wrong:
                raise ValueError(f"hosts.{name}: {wrong}, and dry is {self.dry}")
        return self

    def host(self, name: str) -> HostReport:
        """Raises KeyError."""
        return HostReport.from_dict(name, self.hosts[name].model_dump())


def received(text: str) -> Received:
    """Raises ValueError with the first thing that is wrong."""
    try:
        return Received.model_validate_json(text)
    except ValidationError as error:
        found: Any = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(key) for key in found["loc"])
        why = found["msg"].removeprefix("Value error, ")
        raise ValueError(f"{place}: {why}" if place else why) from None
