"""Write packages and images of a Kubernetes release into the folder that the mirror serves too."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from gpufleet_sandbox.cluster.build import kubernetes_servers, program
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.debian import unpacked
from gpufleet_sandbox.kubernetes import images
from gpufleet_sandbox.kubernetes.packages import packages
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.mirror import debs, repositories
from gpufleet_sandbox.mirror.model import Repository
from gpufleet_sandbox.mirror.signing import KeyRing, key_ring
from gpufleet_sandbox.registry.images import write_image

FOLDER = "kubernetes"  # beside the mirror's tree
COMMANDS = ("kubeadm", "kubectl", "kubelet", "kube-proxy")
FLANNEL_PLUGIN = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel1"
PLUGIN = "nvidia-device-plugin"
SHARING = "nvidia-device-plugin-0.18"  # with all programs of its image
BESIDE_PLUGIN = ("config-manager", "gpu-feature-discovery", "mps-control-daemon")
NFD = ("nfd-master", "nfd-worker", "nfd-gc")
Progress = Callable[[str], None]


def build(cache: Path, release: str, progress: Progress) -> Path:
    """The folder with the repository `core:/stable:/vMINOR/deb` and the images below v2/.

    Built once for each release (1.36.3). SandboxError GF654 if a program cannot be built.
    """
    home = cache / "mirror"
    target = home / FOLDER
    done = target / f".{release}-{_recipe()}"
    with exclusive(home, FOLDER, progress):
        if not done.exists():
            programs = _programs(cache, release, progress)
            progress(f"writing packages and images of Kubernetes {release}")
            ring = key_ring(home / "gnupg")
            try:
                target.mkdir(parents=True, exist_ok=True)
                (target / "fingerprint").write_text(f"{ring.keys['kubernetes'].fingerprint}\n")
                _write_packages(target, release, programs, ring)
            finally:
                ring.close()
            write_images(target / "v2", _images(release, programs))
            done.touch()
    return target


def plugin_image(program: str = PLUGIN) -> str:
    """Name of the device plugin's image, as in its chart."""
    return f"nvcr.io/nvidia/k8s-device-plugin:{versions().programs[program].version}"


def nfd_image() -> str:
    """Name of the image of Node Feature Discovery, as in its chart."""
    version = versions().programs[NFD[0]].version
    return f"registry.k8s.io/nfd/node-feature-discovery:{version}"


def _only(programs: Mapping[str, Path], *names: str) -> dict[str, Path]:
    return {name: programs[name] for name in names}


def _recipe() -> str:
    """Changes when packages or images are written in another way."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def _programs(cache: Path, release: str, progress: Progress) -> Mapping[str, Path]:
    home = cache / "go"
    names = (*images.CONTROL_PLANE, *COMMANDS)
    built = kubernetes_servers(names, release, home, progress)
    network = ("coredns", "flanneld", "flannel")
    others = (
        versions().kubeadm_tags(release).etcd,
        *network,
        PLUGIN,
        SHARING,
        *BESIDE_PLUGIN,
        *NFD,
    )
    return {**built, **{name: program(name, home, progress) for name in others}}


def _write_packages(
    target: Path, release: str, programs: Mapping[str, Path], ring: KeyRing
) -> None:
    plugins = unpacked("containernetworking-plugins") / "usr" / "lib" / "cni"
    minor = release.rpartition(".")[0]
    found = tuple(packages(release, programs, plugins))
    path = f"core:/stable:/v{minor}/deb"
    repository = Repository(path, "deb", found, "isv:kubernetes", "kubernetes", "Release.key")
    with TemporaryDirectory(dir=target.parent, prefix="kubernetes-") as name:
        work = Path(name)
        built = [debs.write(package, work) for package in found]
        shutil.rmtree(target / path, ignore_errors=True)
        repositories.write(repository, target, ring, built)


def _images(release: str, programs: Mapping[str, Path]) -> list[images.Image]:
    known = versions().programs
    tags = versions().kubeadm_tags(release)
    return [
        *images.control_plane(release, programs),
        images.etcd(programs[tags.etcd], versions().etcd_tag(release)),
        images.coredns(programs["coredns"], tags.coredns),
        images.flannel(programs["flanneld"], known["flanneld"].version),
        images.flannel_plugin(programs["flannel"], FLANNEL_PLUGIN),
        images.device_plugin({PLUGIN: programs[PLUGIN]}, plugin_image()),
        images.device_plugin(
            {PLUGIN: programs[SHARING], **_only(programs, *BESIDE_PLUGIN)}, plugin_image(SHARING)
        ),
        images.feature_discovery(_only(programs, *NFD), nfd_image()),
        images.probe(images.PROBE),
        images.gpu_probe(images.GPU_PROBE),
        images.pause(f"registry.k8s.io/pause:{tags.pause}"),
    ]


def write_images(registry: Path, wanted: Iterable[images.Image]) -> None:
    """Write images into a registry of files."""
    for image in wanted:
        with TemporaryDirectory(prefix="gpufleet-image-") as name:
            root = Path(name)
            image.fill(root)
            write_image(registry, image.name, root, image.command, image.environment, image.user)
