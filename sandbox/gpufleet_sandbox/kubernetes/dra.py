"""What DRA needs on a kubeadm cluster of sandbox hosts: the driver's image, containerd with CDI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpufleet_sandbox.cluster.build import module_folder, program
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.host import Host
from gpufleet_sandbox.kubernetes.build import FOLDER, write_images
from gpufleet_sandbox.kubernetes.images import dra_driver
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.mirror.contents import contents
from gpufleet_sandbox.mirror.gotools import toolkit_programs

DRIVER = "gpu-kubelet-plugin"
REPOSITORY = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu"
RUNTIME = ("containerd", "containerd-shim-runc-v2")
Progress = Callable[[str], None]


def build_dra(cache: Path, progress: Progress) -> None:
    """Write the driver's image into the registry that the mirror serves, under the name in its
    chart. SandboxError GF654 if it cannot be built."""
    home = cache / "go"
    built, source = program(DRIVER, home, progress), module_folder(DRIVER, home, progress)
    hook = toolkit_programs(contents()["toolkit"][-1], cache, progress) / "nvidia-cdi-hook"
    name = f"{REPOSITORY}:{versions().programs[DRIVER].version}"
    with exclusive(cache / "mirror", FOLDER, progress):
        write_images(cache / "mirror" / FOLDER / "v2", [dra_driver(built, source, hook, name)])


def renew_containerd(host: Host, cache: Path, progress: Progress) -> None:
    """Replace the distribution's containerd by one with CDI, and reboot the host."""
    for name in RUNTIME:
        built = program(name, cache / "go", progress)
        host.engine("cp", built, f"{host.state.container}:/usr/bin/{name}.new")
        host.run(f"mv /usr/bin/{name}.new /usr/bin/{name}")
    host.reboot()
