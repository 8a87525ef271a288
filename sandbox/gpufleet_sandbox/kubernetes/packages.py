"""The packages of the Kubernetes project, with the real programs inside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpufleet_sandbox.mirror.model import File, Package
from gpufleet_sandbox.mirror.payload import text

REVISION = "1.1"
CNI_VERSION = "1.1.1"  # of the distribution's containernetworking-plugins
CNI_PROGRAMS = ("bridge", "host-local", "loopback", "portmap")
CNI_FOLDER = "/opt/cni/bin"


def packages(release: str, programs: Mapping[str, Path], plugins: Path) -> list[Package]:
    """kubelet, kubeadm, kubectl and kubernetes-cni of a release (1.36.3).

    `programs`: name -> binary; `plugins`: folder with the CNI programs.
    """
    version = f"{release}-{REVISION}"

    def package(name: str, files: dict[str, File], *needs: str) -> Package:
        own = {f"/usr/bin/{name}": File(programs[name], 0o755)} if name in programs else {}
        relations = {"Depends": needs} if needs else {}
        return Package(
            "deb", name, version, f"{name} of Kubernetes {release}", relations=relations,
            files={**own, **files},
        )  # fmt: skip

    units = "/usr/lib/systemd/system"
    cni = {f"{CNI_FOLDER}/{name}": File(plugins / name, 0o755) for name in CNI_PROGRAMS}
    return [
        package(
            "kubelet",
            {f"{units}/kubelet.service": File(text("units/kubelet.service"))},
            "kubernetes-cni",
        ),
        package(
            "kubeadm",
            {f"{units}/kubelet.service.d/10-kubeadm.conf": File(text("conf/10-kubeadm.conf"))},
            f"kubelet (>= {release})",
            f"kubectl (>= {release})",
        ),
        package("kubectl", {}),
        Package("deb", "kubernetes-cni", f"{CNI_VERSION}-{REVISION}", "CNI programs", files=cni),
    ]
