"""Rules files of the user: `monitoring_extra_rules`, read and checked with the settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from gpufleet.core.paths import expand_user_path
from gpufleet.core.yaml_events import LOADER

EXTRA_RULE_NAME = "gpufleet-extra"


class _Part(BaseModel):
    """Keys that Prometheus has and this model has not are allowed, such as keep_firing_for."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Rule(_Part):
    expr: str | int
    alert: str = ""
    record: str = ""
    for_: str = Field("", alias="for")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_name(self) -> _Rule:
        if bool(self.alert) == bool(self.record):
            raise ValueError("must have either `alert` or `record`")
        return self


class _Group(_Part):
    name: str = Field(min_length=1)
    rules: list[_Rule]


class _RulesFile(_Part):
    groups: list[_Group]


def extra_groups(paths: Sequence[str]) -> list[dict[str, Any]]:
    """The groups of all files. Raises ValueError, which names the file and the place in it."""
    groups: list[dict[str, Any]] = []
    for path in paths:
        try:
            content = yaml.load(expand_user_path(path).read_bytes(), LOADER)
            _RulesFile.model_validate(content)
        except OSError as error:
            raise ValueError(f"has {path!r}: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the file"
            raise ValueError(f"has {path!r}, where {place}: {first['msg']}") from error
        except (yaml.YAMLError, RecursionError) as error:
            raise ValueError(f"has {path!r}, which is not valid YAML: {error}") from error
        groups += content["groups"]
    names = Counter(each["name"] for each in groups)
    twice = [name for name, number in names.items() if number > 1]
    if twice:
        raise ValueError(f"has two groups with the name {twice[0]!r}")
    return groups


def _check(paths: list[str]) -> list[str]:
    extra_groups(paths)
    return paths


RulesFiles = Annotated[
    list[str],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    AfterValidator(_check),
]
