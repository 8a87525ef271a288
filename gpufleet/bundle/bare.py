"""The plan for a host without what gpufleet installed: a bundle also fits new hosts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpufleet.bundle.models import LackingItem
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.node.plan import NodePlan
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.listing import node_roles


def bare_facts(facts: NodeFacts) -> NodeFacts:
    """The facts of the same host before gpufleet installed anything. Sources, runtimes and their
    configuration stay."""
    return replace(
        facts,
        kernel=replace(facts.kernel, headers=False),
        modules={},
        loaded_flavour=None,
        module_on_disk=None,
        listed=None,
        library=None,
        dkms=(),
        packages={},
        holds=frozenset(),
        broken="",
        gpu_processes=(),
        collectors=(),
        gpu_pods=0,
        gpu_containers=0,
        provenance=EMPTY_RECORD,
        foreign_driver="",
        driver_files=(),
    )


def planned_transactions(plan: NodePlan) -> tuple[PackageTransaction, ...]:
    """The transactions of all roles that install packages from a repository."""
    return tuple(each for each in plan.transactions if each.packages)


def images_on_host(plan: NodePlan) -> tuple[LackingItem, ...]:
    """Images that docker pulls on the host: a bundle lacks them."""
    described = (part.role.describe(part.plan).get("image") for part in plan.wanted)
    remedy = 'Mirror it and set exporter_image, or install packages: exporter_mode = "systemd".'
    why = "docker pulls it on hosts"
    return tuple(LackingItem(f"image {image}", why, remedy) for image in described if image)


def own_packages(facts: NodeFacts, asked: Sequence[PackageTransaction]) -> tuple[str, ...]:
    """Packages on the host that a host without gpufleet's work lacks: those that it added, and
    those that the plan installs."""
    record = facts.provenance
    added = {name for role in node_roles() for name in record.entry(role.entry).added}
    planned = {name for each in asked for name in each.packages}
    return tuple(sorted(added | planned))


def closure_words(chosen: PackageTransaction) -> tuple[str, ...]:
    """What a transaction installs, in the form of its package manager: NAME, or NAME and version
    with apt's `=` or yum's `-`. yum 3 knows no epoch without an architecture."""
    plain = (*chosen.companions, *chosen.prerequisites)
    if chosen.manager == "apt":
        return (*(f"{name}={version}" for name, version in chosen.install), *plain)
    system = chosen.facts.distribution
    lock = (system.version_lock,) if system and system.version_lock else ()
    versions = (f"{name}-{version.split(':')[-1]}" for name, version in chosen.install)
    return (*versions, *plain, *lock)
