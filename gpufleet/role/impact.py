"""The impact of a plan on a host: services that it interrupts, and files that it writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Reboot = Literal["none", "possible", "manual"]  # manual: may need one, makes none


@dataclass(frozen=True, slots=True)
class Impact:
    """`restarts`: unit -> containers that it runs now, None if it runs no containers; `files`:
    paths that may be written, without those of packages; `sources`: package repository -> URL
    before (None if new) and after."""

    restarts: Mapping[str, int | None] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    sources: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    unloads: bool = False  # the driver: no program can use a GPU until it is loaded again
    reboot: Reboot = "none"
    pods: int = 0  # pods with GPUs on the host now

    def __add__(self, other: Impact) -> Impact:
        return Impact(
            {**self.restarts, **other.restarts},
            tuple(dict.fromkeys((*self.files, *other.files))),
            {**self.sources, **other.sources},
            self.unloads or other.unloads,
            self.reboot if other.reboot == "none" else other.reboot,
            max(self.pods, other.pods),
        )

    def as_json(self) -> dict[str, Any]:
        """The impact in the form of report.schema.json."""
        return {
            "restarts": dict(self.restarts),
            "files": sorted(self.files),
            "sources": {
                name: {"before": before, "after": after}
                for name, (before, after) in self.sources.items()
            },
            "unloads_driver": self.unloads,
            "reboot": self.reboot,
            "gpu_pods": self.pods,
        }


NO_IMPACT = Impact()
