"""Kubernetes control planes for tests: real servers, simulated nodes."""

from gpufleet_sandbox.cluster.cluster import Cluster, every_cluster

__all__ = ["Cluster", "every_cluster"]
