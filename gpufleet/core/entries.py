"""Base types of all catalog entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gpufleet.core.data import read_data
from gpufleet.core.findings import Finding
from gpufleet.core.own_catalog import own_problem
from gpufleet.core.stopped import Stopped

Build = Literal["dkms", "precompiled"]
Modules = Literal["open", "proprietary"]
PackageManager = Literal["apt", "dnf", "yum", "zypper"]
Profile = Literal["compute", "full"]
Source = Literal["nvidia", "distro"]
Style = Literal["deb", "rpm"]
Role = Literal["dkms", "kernel", "modules", "userland", "desktop", "own"]


class Entry(BaseModel):
    """Base of every catalog type. Immutable; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Sourced(Entry):
    """A catalog entry that names the source of its facts."""

    source: str
    verified: str = ""
    note: str = ""


class BranchRange(Entry):
    """A range of branches that includes both ends. A missing end means no limit."""

    first: int | None = None
    last: int | None = None

    def covers(self, branch: int) -> bool:
        return (self.first or 0) <= branch <= (self.last or 9999)


AnyEntry = TypeVar("AnyEntry", bound=Entry)
SHOWN_ERRORS = 10  # wrong entries of the user's that one message names


def entry_loader(kind: type[AnyEntry], name: str) -> Callable[[], AnyEntry]:
    """A function that returns the data file ROOM/NAME as an entry, and reads it only once. It
    raises Stopped for a wrong entry of catalog.d/."""
    return lru_cache(maxsize=1)(lambda: validate_data(kind, {}, read_data(name), name))


def validate_data(
    kind: type[AnyEntry], parts: Mapping[str, str], data: Mapping[str, Any], name: str = ""
) -> AnyEntry:
    """Data as an entry. Raises Stopped for a wrong entry of catalog.d/.

    `parts`: key of the data -> the data file, ROOM/NAME, that it is the content of; `name`: the
    file of all other keys.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problems = [_problem(detail, parts, data, name) for detail in error.errors()]
        known = dict.fromkeys(filter(None, problems))
        if not known:
            raise
        raise Stopped(*list(known)[:SHOWN_ERRORS]) from error


def _problem(
    detail: Mapping[str, Any], parts: Mapping[str, str], data: Mapping[str, Any], name: str
) -> Finding | None:
    first, *rest = detail["loc"]
    if first in parts:
        return own_problem(parts[first], data[first], {**detail, "loc": rest})
    return own_problem(name, data, detail)
