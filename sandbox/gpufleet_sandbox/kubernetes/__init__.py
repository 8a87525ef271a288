"""What kubeadm installs, on the sandbox's mirror: packages and images of one Kubernetes release.

`build` writes them beside the mirror's tree; they are built from their Go modules when a cluster of
sandbox hosts is first asked for, so that a sandbox without one needs no Go.
"""

from gpufleet_sandbox.kubernetes.build import FOLDER, build

__all__ = ["FOLDER", "build"]
