"""Packages and images of one Kubernetes release for kubeadm, on the sandbox's mirror.

`build` writes them next to the mirror's tree. They are built from Go modules when a cluster of
sandbox hosts is first requested, so that a sandbox without a cluster does not need Go.
"""

from gpufleet_sandbox.kubernetes.build import FOLDER, build

__all__ = ["FOLDER", "build"]
