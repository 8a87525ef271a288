"""Reads the links of the software chain, from the driver's packages to the kubelet. Pure.

A reader returns what it read, with a fault if a link is broken, or None if the host does not have
the link. Faults that a finding reports, such as those of driver/health.py, are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpufleet.doctor import container_links, driver_links
from gpufleet.doctor.models import Link
from gpufleet.driver.files import own_gpus
from gpufleet.facts.model import NodeFacts

Reader = Callable[[NodeFacts], Link | None]
LINK_READERS: dict[str, Reader] = {
    "host.busy": driver_links.read_busy,
    "host.disk": driver_links.read_disk,
    "host.packages": driver_links.read_packages,
    "chain.gpus": driver_links.read_pci_bus,
    "chain.driver": driver_links.read_driver,
    "chain.headers": driver_links.read_headers,
    "chain.build": driver_links.read_build,
    "chain.signature": driver_links.read_signature,
    "chain.nouveau": driver_links.read_nouveau,
    "chain.loaded": driver_links.read_loaded,
    "chain.version": driver_links.read_version,
    "chain.bound": driver_links.read_bound,
    "chain.nodes": driver_links.read_nodes,
    "chain.nvml": driver_links.read_nvml,
    "host.readings": driver_links.read_readings,
    "host.log": driver_links.read_log,
    "chain.persistence": driver_links.read_persistence,
    "chain.fabric": driver_links.read_fabric,
    "chain.layout": driver_links.read_layout,
    "chain.toolkit": container_links.read_toolkit,
    "chain.runtime": container_links.read_runtime,
    "chain.effect": container_links.read_effect,
    "chain.cri": container_links.read_cri,
    "chain.nvidia_runtime": container_links.read_nvidia_runtime,
    "chain.cgroups": container_links.read_cgroups,
    "chain.cdi": container_links.read_cdi,
    "chain.kubelet": container_links.read_kubelet,
    "chain.exporter": container_links.read_exporter,
    "chain.metrics": container_links.read_metrics,
}
_NAMES = tuple(LINK_READERS)
OF_THE_DRIVER = _NAMES[_NAMES.index("chain.gpus") : _NAMES.index("chain.toolkit")]  # need a GPU


def read_chain(facts: NodeFacts) -> Mapping[str, Link | None]:
    """Read the links of a host's chain; those of the driver only if the host uses a GPU itself."""
    skipped = () if own_gpus(facts) or facts.taken else OF_THE_DRIVER
    return {name: None if name in skipped else read(facts) for name, read in LINK_READERS.items()}
