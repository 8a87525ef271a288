"""Base types of all catalog entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from gpufleet.core.data import read_data

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


def entry_loader(kind: type[AnyEntry], name: str) -> Callable[[], AnyEntry]:
    """A function that returns the data file ROOM/NAME as an entry, and reads it only once."""
    return lru_cache(maxsize=1)(lambda: kind.model_validate(read_data(name)))
