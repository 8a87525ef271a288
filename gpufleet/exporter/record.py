"""The exporter in the host's record."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from gpufleet.facts.record import RoleEntry


class ExporterEntry(RoleEntry):
    """The exporter that gpufleet started."""

    role: ClassVar[str] = "exporter"

    mode: str = ""  # systemd or docker
    dcgm: str | None = None  # version
    image: str | None = None
    listen: str = ""  # host:port
    metrics: str = ""  # URL on the host itself
    units: list[str] = Field(default_factory=list)
    configuration: str | None = None  # digest of its files; None: it never ran
    driver: str | None = None  # version at its start

    @property
    def versions(self) -> set[str | None]:
        """The exporter's version and DCGM's."""
        return {self.version, self.dcgm}
