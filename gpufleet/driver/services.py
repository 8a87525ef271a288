"""Services of the driver: which a host needs, and which a run starts. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.driver.files import PERSISTENCE_OVERRIDE
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.gpu_work import in_containers
from gpufleet.facts.model import NodeFacts, Service

PERSISTENCED = "nvidia-persistenced"


def wanted_services(settings: DriverSettings, facts: NodeFacts) -> tuple[str, ...]:
    """Those that a host with these GPUs needs."""
    wanted = [PERSISTENCED] if settings.persistence else []
    if facts.nvswitches:
        wanted.append("nvidia-fabricmanager")
    return tuple(wanted)


def services_to_start(wanted: Collection[str], facts: NodeFacts, waits: bool) -> tuple[str, ...]:
    """Those that do not run as they should. `waits`: as of `persistence_waits`."""
    there = waits and PERSISTENCE_OVERRIDE in facts.texts
    return tuple(
        name for name in wanted if not _runs(facts, name) and not (there and name == PERSISTENCED)
    )


def persistence_waits(wanted: Collection[str], facts: NodeFacts, spared: Collection[int]) -> bool:
    """Whether the persistence daemon that runs needs another unit file while containers have
    GPUs."""
    service = facts.services.get(f"{PERSISTENCED}.service")
    needed = PERSISTENCED in wanted and service and service.runs and _switches_off(service)
    return bool(needed) and in_containers(facts, spared)


def _runs(facts: NodeFacts, name: str) -> bool:
    service = facts.services.get(f"{name}.service")
    return bool(service and service.runs and not _switches_off(service))


def _switches_off(service: Service) -> bool:
    """Whether a unit starts the daemon without persistence mode, as Ubuntu's does."""
    return "--no-persistence-mode" in service.exec_start
