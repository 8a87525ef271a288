"""The report of a worker, which may be on another machine: checked before it is used. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from typing_extensions import Self

from gpufleet.core.runtime_state import RuntimeState
from gpufleet.core.visible import indented, one_line
from gpufleet.run.report import BAD, HostReport, Status

Line = Annotated[str, AfterValidator(one_line)]
Text = Annotated[str, AfterValidator(indented)]
Movement = dict[Literal["before", "after"], str | None]


class _Checked(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Finding(_Checked):
    code: Annotated[str, StringConstraints(pattern=r"^GF[0-9]{3}$")]
    severity: Literal["info", "warning", "blocker"]
    message: Text
    remedy: Text


class _Plan(_Checked, extra="allow"):
    steps: list[Text]
    versions: dict[str, Movement] = {}
    leaves: bool = False


class _Host(_Checked, extra="allow"):
    """report.schema.json; what has no field here is the version of a role."""

    __pydantic_extra__: dict[str, Movement]
    kind: Literal["node", "cluster"]
    status: Status
    changed: Annotated[int, Field(ge=0)]
    failed: bool
    runtimes: dict[str, RuntimeState]
    releases: dict[str, Movement]
    needs: list[Line]
    findings: list[_Finding]
    errors: list[Text]
    plan: _Plan
    seconds: Annotated[float, Field(ge=0)]

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.failed != (self.status in BAD):
            raise ValueError(f"failed is {self.failed} with the status {self.status}")
        return self


class Received(_Checked, extra="ignore"):
    """What a run reads of the report of a part."""

    version: Literal[1] = Field(alias="schema")
    exit_status: int
    dry: bool
    completed: bool
    hosts: dict[str, _Host]

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
        raise ValueError(f"{place}: {found['msg']}" if place else found["msg"]) from None
