"""What a plan does to a host beside its steps: what is interrupted and written. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Reboot = Literal["none", "possible", "manual"]  # manual: a run may ask for one, and makes none


@dataclass(frozen=True, slots=True)
class Impact:
    """`restarts`: unit -> containers that it runs now, None for one that runs none; `files`: paths
    that may be written, those of packages apart; `sources`: package repository -> URL before (None:
    new) and after."""

    restarts: Mapping[str, int | None] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    sources: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    unloads: bool = False  # the loaded driver: no program can use a GPU until it is back
    reboot: Reboot = "none"
    pods: int = 0  # with GPUs, on the host now

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
        """As report.schema.json has it."""
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
