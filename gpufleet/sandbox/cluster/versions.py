"""The versions that test clusters are built from (versions.yaml)."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict

from gpufleet.sandbox.errors import SandboxError, kinds


class Program(BaseModel):
    """A Go program at one version; see versions.yaml for the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    module: str
    version: str
    package: str
    stamp: str = ""
    stages: tuple[str, ...] = ()


class Versions(BaseModel):
    """`kubernetes`: minor -> release, as in 1.36 -> 1.36.3; `programs`: name -> where it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kubernetes: dict[str, str]
    programs: dict[str, Program]

    def release(self, wanted: str) -> str:
        """The release of a minor; SandboxError where none is known.

        `wanted` is a minor (1.36), with or without a v, or a release that is in the table.
        """
        found = wanted.removeprefix("v")
        if found in self.kubernetes.values():
            return found
        if found not in self.kubernetes:
            raise SandboxError(
                kinds.UNKNOWN_KUBERNETES(wanted=wanted, known=", ".join(self.kubernetes))
            )
        return self.kubernetes[found]


@lru_cache(maxsize=1)
def versions() -> Versions:
    """versions.yaml, checked."""
    text = resources.files("gpufleet.sandbox.cluster").joinpath("versions.yaml").read_text()
    return Versions.model_validate(yaml.safe_load(text))
