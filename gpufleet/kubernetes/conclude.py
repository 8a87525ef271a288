"""Results of the kubernetes role for the record on the host and for the report."""

from __future__ import annotations

from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.images import with_archives
from gpufleet.kubernetes.plan import KubernetesPlan
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.result import RoleResult, file_digests
from gpufleet.toolkit.record import ChangesPart, FilePart


def conclude_kubernetes(
    settings: KubernetesSettings,
    facts: NodeFacts,
    plan: KubernetesPlan,
    found: PackageTransaction | None,
) -> RoleResult:
    """The state of the host after the run. `found`: the transaction, if one ran."""
    old = facts.provenance.entry(KubernetesEntry)
    version = found.version if found else plan.before
    part = old.containerd
    if made := plan.containerd:
        part = FilePart(config=made.config, changes=ChangesPart.of(made.record))
    entry = KubernetesEntry(
        version=version,
        part=plan.part,
        network=plan.network,
        containerd=part,
        packages=plan.transaction.versions(found, old),
        held=settings.hold,
        **with_archives(settings.image_archives, old),
    )
    return RoleResult(entry, file_digests(plan.wanted_files), version)
