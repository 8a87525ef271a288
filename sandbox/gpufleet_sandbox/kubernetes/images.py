"""The images that kubeadm and a GPU node pull, under their real names."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpufleet_sandbox.debian import unpacked

PROBE = "docker.io/library/busybox:1"
GPU_PROBE = "docker.io/gpufleet/nvidia-smi:1"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
APPLETS = (
    "sh",
    "cp",
    "ls",
    "cat",
    "env",
    "grep",
    "sleep",
    "nc",
    "wget",
    "nslookup",
    "httpd",
    "hostname",
    "readlink",
    "sed",
    "basename",
    "date",
    "find",
    "head",
    "ln",
    "mount",
    "umount",
    "tail",
)
IPTABLES = tuple(
    f"{tool}{part}" for tool in ("iptables", "ip6tables") for part in ("", "-save", "-restore")
)
NETWORK_TOOLS = (
    "iptables", "conntrack", "busybox-static", "libxtables12", "libip4tc2", "libip6tc2", "libmnl0",
    "libnftnl11", "libnfnetlink0", "libnetfilter-conntrack3",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Image:
    """One image. `fill` writes its files into an empty folder."""

    name: str
    fill: Callable[[Path], None]
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""


def control_plane(release: str, programs: Mapping[str, Path]) -> list[Image]:
    """API server, controller manager, scheduler and kube-proxy of a release (1.36.3)."""
    found = [
        Image(f"registry.k8s.io/{name}:v{release}", _linked(programs[name]), (name,))
        for name in CONTROL_PLANE
    ]
    proxy = programs["kube-proxy"]
    return [*found, Image(f"registry.k8s.io/kube-proxy:v{release}", _networked(proxy), ())]


def etcd(program: Path, tag: str) -> Image:
    """etcd, under the tag in kubeadm's configuration."""
    return Image(f"registry.k8s.io/etcd:{tag}", _linked(program, "etcd"), ("etcd",))


def coredns(program: Path, version: str) -> Image:
    """CoreDNS, which its Deployment starts with arguments only."""
    name = f"registry.k8s.io/coredns/coredns:{version}"
    return Image(name, _single(program, "/coredns"), ("/coredns",))


def flannel(program: Path, version: str) -> Image:
    """flannel, with the programs that it sets routes and rules with."""
    name = f"ghcr.io/flannel-io/flannel:{version}"
    return Image(name, _networked(program, "/opt/bin"), ("/opt/bin/flanneld",))


def flannel_plugin(program: Path, name: str) -> Image:
    """flannel's CNI program, which an init container copies to the host."""

    def fill(root: Path) -> None:
        _shell(root)
        _put(program, root, "/flannel")

    return Image(name, fill, ("/bin/sh",))


def device_plugin(programs: Mapping[str, Path], name: str) -> Image:
    """NVIDIA's device plugin and the programs beside it, under the name in its chart. The tools are
    for the MPS control daemon."""
    places = {f"/usr/bin/{each}": program for each, program in programs.items()}
    wanted = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    fill = files(places, packages=("libc6",), shell=True)
    return Image(name, fill, ("/usr/bin/nvidia-device-plugin",), wanted)


def feature_discovery(programs: Mapping[str, Path], name: str) -> Image:
    """Node Feature Discovery, which its chart starts by name."""
    places = {f"/usr/bin/{each}": program for each, program in programs.items()}
    return Image(name, files(places), ("/usr/bin/nfd-master",), user="65534:65534")


def dra_driver(program: Path, source: Path, hook: Path, name: str) -> Image:
    """NVIDIA's DRA driver, for GPUs only. `source`: its module; `hook`: nvidia-cdi-hook."""
    script = "kubelet-plugin-prestart.sh"
    # the nvidia-smi of this machine's distribution has no --version
    text = (source / "hack" / script).read_text().replace("--version\n", "-L\n")
    places = {
        "/usr/bin/gpu-kubelet-plugin": program,
        "/usr/bin/nvidia-cdi-hook": hook,
        "/bin/bash": unpacked("bash-static") / "bin" / "bash-static",
    }
    fill = files(places, packages=("libc6",), shell=True, texts={f"/usr/bin/{script}": text})
    return Image(name, fill, ("/usr/bin/gpu-kubelet-plugin",))


def probe(name: str) -> Image:
    """A shell, for pods of people and tests."""
    return Image(name, _shell, ("/bin/sh",))


def gpu_probe(name: str) -> Image:
    """A pod that ends well if it sees a GPU: nvidia-smi comes from the host's driver."""

    def fill(root: Path) -> None:
        _unpack("libc6", root)
        _shell(root)

    return Image(name, fill, ("/bin/sh", "-c", "nvidia-smi -L | grep GPU-"))


def files(
    programs: Mapping[str, Path],
    *,
    packages: Sequence[str] = (),
    shell: bool = False,
    texts: Mapping[str, str] | None = None,
) -> Callable[[Path], None]:
    """Programs by their path, packages of the distribution, and texts by their path."""

    def fill(root: Path) -> None:
        for package in packages:
            _unpack(package, root)
        if shell:
            _shell(root)
        for place, program in programs.items():
            _put(program, root, place)
        for place, content in (texts or {}).items():
            target = root / place.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)

    return fill


def _shell(root: Path) -> None:
    _put(unpacked("busybox-static") / "bin" / "busybox", root, "/bin/busybox")
    for name in APPLETS:
        (root / "bin" / name).symlink_to("busybox")


def _single(program: Path, place: str) -> Callable[[Path], None]:
    def fill(root: Path) -> None:
        _put(program, root, place)

    return fill


def _linked(program: Path, name: str = "") -> Callable[[Path], None]:
    """A program that is linked to libc; `name`: of its file, where that is not the program's."""

    def fill(root: Path) -> None:
        _unpack("libc6", root)
        _put(program, root, f"/usr/local/bin/{name or program.name}")

    return fill


def _networked(program: Path, folder: str = "/usr/local/bin") -> Callable[[Path], None]:
    """A program that calls iptables and others."""

    def fill(root: Path) -> None:
        for package in ("libc6", *NETWORK_TOOLS):
            _unpack(package, root)
        _put(program, root, f"{folder}/{program.name}")
        for name in IPTABLES:  # Debian's alternatives, which the package's script would set
            (root / "usr" / "sbin" / name).symlink_to("xtables-nft-multi")
        for name in APPLETS:
            link = root / "bin" / name
            if not link.exists():
                link.symlink_to("busybox")
        (root / "tmp").mkdir(mode=0o1777)

    return fill


def _unpack(package: str, root: Path) -> None:
    """A package of this machine's distribution without its documentation."""
    ignore = shutil.ignore_patterns("doc", "man", "lintian", "locale")
    shutil.copytree(unpacked(package), root, symlinks=True, dirs_exist_ok=True, ignore=ignore)


def _put(program: Path, root: Path, place: str) -> None:
    target = root / place.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # a link to busybox, which would be written over
    shutil.copy2(program, target)


def pause(name: str) -> Image:
    """The image that holds the namespaces of a pod."""

    def fill(root: Path) -> None:
        _shell(root)

    # a first process that ends at once when it is asked to
    return Image(name, fill, ("/bin/sh", "-c", "trap exit TERM INT; sleep infinity & wait"))
