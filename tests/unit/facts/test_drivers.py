"""The owner of the driver on a host. The package manager is asked only if that is needed."""

from __future__ import annotations

import pytest
from fakehost import FakeHost

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections.drivers import parse_driver_files

FOLDER = "/usr/local/nvidia/lib64"
ML = "libnvidia-ml.so.580.159.04"
DEBIAN, EL = "/usr/lib/x86_64-linux-gnu", "/usr/lib64"
MODULE = "/lib/modules/6.1.0-9/updates/dkms/nvidia.ko"
# Packages without the driver's library or module, though some have the version of a driver.
BESIDE = (
    "libnvidia-container1 1.20.1-1", "nvidia-docker2 2.14.0-1", "firmware-nvidia 20240709-2",
    "nvidia-fabricmanager-580 580.1-1", "linux-image-6.8.0-1030-nvidia 6.8.0-1030.33",
    "nvidia-driver-local-repo-ubuntu2404-580.95.05 1.0-1", "nvidia-settings 570.1-1",
    "nvidia-detect 535.183.01-1", "firmware-nvidia-gsp 535.183.01-1",
    "nvidia-alternative 535.183.01-1", "nvidia-libXNVCtrl 3:580.95.05-1",
    "nvidia-driver-pinning-580.95.05 580.95.05-1",
)  # fmt: skip


def facts(host: FakeHost, shell: tuple[str, ...]) -> NodeFacts:
    return parse_node_facts(host.gather(shell))


def el(host: FakeHost) -> None:
    host.file("/etc/os-release", 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n')


def loaded(host: FakeHost, *, on_disk: str = "") -> None:
    """The driver's module is loaded. `on_disk`: a module file of the kernel, if it has one."""
    host.file("/sys/module/nvidia/version", "580.159.04\n")
    host.file("/lib/modules/6.1.0-9/modules.order", "")
    if on_disk:
        path = host.file(on_disk, "")
        host.says("modinfo", f"filename:       {path}\nversion: 580.159.04\nlicense: NVIDIA\n")


@pytest.mark.parametrize("path", [FOLDER, DEBIAN])
def test_a_driver_without_packages(host: FakeHost, shell: tuple[str, ...], path: str) -> None:
    where = f"its libraries are in {FOLDER}" if path == FOLDER else f"no package has {ML}"
    host.file(f"{path}/{ML}", "")
    host.has_packages(*BESIDE)
    assert facts(host, shell).foreign_driver == where
    for name in ("libnvidia-compute", "cuda-drivers", "nvidia-kernel-dkms"):
        host.has_packages(f"{name} 580.95.05-1")
        assert facts(host, shell).foreign_driver == "", name


@pytest.mark.parametrize(
    "folder", ["/opt/nvidia/lib64", "/var/lib/nvidia/lib64", "/usr/local/lib", FOLDER]
)
def test_folders_of_installers(host: FakeHost, shell: tuple[str, ...], folder: str) -> None:
    host.file(f"{folder}/{ML}", "")
    host.has_packages()
    assert facts(host, shell).foreign_driver == f"its libraries are in {folder}"
    host.has_packages(owns={f"{folder}/{ML}": "acme-gpu"})
    found = facts(host, shell)
    assert found.foreign_driver == ""
    assert [file.owners for file in found.driver_files] == [("acme-gpu",)]


def test_a_module_that_no_kernel_package_has(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.has_packages()
    host.file("/sys/module/nvidia/version", "580.159.04\n")
    found = facts(host, shell)
    assert found.foreign_driver == ("its module is loaded, and there is no /lib/modules/6.1.0-9")
    assert not found.kernel.modules
    host.file("/lib/modules/6.1.0-9/modules.order", "")
    found = facts(host, shell)
    assert (found.foreign_driver, found.kernel.modules) == ("", True)


@pytest.mark.parametrize("folder", ["updates/dkms", "extra", "weak-updates", "kernel/drivers"])
def test_a_module_of_no_package(host: FakeHost, shell: tuple[str, ...], folder: str) -> None:
    path = f"/lib/modules/6.1.0-9/{folder}/nvidia.ko"
    loaded(host, on_disk=path)
    host.has_packages(*BESIDE)
    assert facts(host, shell).foreign_driver == f"no package has its module {path}"
    host.has_packages(owns={path: "acme-kernel"})
    assert facts(host, shell).foreign_driver == ""


def test_a_module_of_dkms(host: FakeHost, shell: tuple[str, ...]) -> None:
    """Removing the packages removes the source. A source without an owner is a foreign driver's."""
    loaded(host, on_disk=MODULE)
    host.link("/var/lib/dkms/nvidia/580.159.04/source", "/usr/src/nvidia-580.159.04")
    host.has_packages()
    found = facts(host, shell)
    assert (found.foreign_driver, found.dkms[0].name) == ("", "nvidia")
    host.file("/usr/src/nvidia-580.159.04/dkms.conf", "")
    assert facts(host, shell).foreign_driver == f"no package has its module {MODULE}"
    host.has_packages(owns={"/usr/src/nvidia-580.159.04": "acme-dkms"})
    found = facts(host, shell)
    assert found.foreign_driver == ""
    assert {file.kind: file.owners for file in found.driver_files} == {
        "module": (), "source": ("acme-dkms",),
    }  # fmt: skip


def test_a_library_that_the_loader_knows(host: FakeHost, shell: tuple[str, ...]) -> None:
    """Folders like /home are not searched. The loader's cache may be older than its files."""
    loaded(host)
    host.has_packages()
    cache = b"glibc-ld.so.cache1.1\0\x01libnvidia-ml.so.1\0%s/libnvidia-ml.so.1\0libz.so.1\0"
    there = b"/home/kubernetes/bin/nvidia/lib64"
    host.file("/etc/ld.so.cache", cache % there)
    assert facts(host, shell).foreign_driver == (
        f"its module is loaded, and programs get {there.decode()}/libnvidia-ml.so.1"
    )
    host.file("/etc/ld.so.cache", cache % f"{host.root}/usr/lib/nvidia".encode())
    assert facts(host, shell).foreign_driver == ""
    host.file("/usr/lib/nvidia/libnvidia-ml.so.1", "")
    assert facts(host, shell).foreign_driver == "no package has libnvidia-ml.so.1"


@pytest.mark.parametrize(
    "name",
    ["NVIDIA-vGPU-rhel 9.4-580.95.05", "gpu-driver 580.95.05-1", "nvidia-gpu-driver 2025.10.1-1",
     "xorg-x11-drv-nvidia-cuda-libs 580.95.05-1", "nvidia-l4t-nvml 38.2.0-1"],
)  # fmt: skip
def test_a_package_of_another_source(host: FakeHost, shell: tuple[str, ...], name: str) -> None:
    el(host)
    host.file(f"{EL}/{ML}", "")
    host.has_packages(name, owns={f"{EL}/{ML}": name.split()[0]})
    found = facts(host, shell)
    assert found.foreign_driver == ""
    assert [file.owners for file in found.driver_files] == [(name.split()[0],)]
    host.has_packages(name)
    assert facts(host, shell).foreign_driver == f"no package has {ML}"


def test_a_kernel_module_beside_a_library_of_another_source(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    el(host)
    host.file(f"{EL}/{ML}", "")
    host.has_packages("kmod-nvidia 580.1-1", owns={f"{EL}/{ML}": "nvidia-x11-drv"})
    assert [file.owners for file in facts(host, shell).driver_files] == [("nvidia-x11-drv",)]


@pytest.mark.parametrize("output", ["", "error: rpmdb: damaged header #3"])
def test_a_database_that_is_not_read(host: FakeHost, shell: tuple[str, ...], output: str) -> None:
    el(host)
    host.file(f"{EL}/{ML}", "")
    loaded(host, on_disk=MODULE)
    row = "echo 'rpm\tx86_64\t4-1\tinstall ok installed'" if output else ":"
    trouble = f"echo '{output}' >&2" if output else ":"
    no = 'case $path in /*) echo "file $path is not owned by any package" ;; esac'
    host.command("rpm", f"[ $1 = -qf ] || {{ {row}; exit 1; }}\n{trouble}\nfor path; do {no}; done")
    found = facts(host, shell)
    assert {file.kind: file.owners for file in found.driver_files} == {
        "library": None, "module": None,
    }  # fmt: skip
    assert found.foreign_driver == ""


@pytest.mark.parametrize(
    ("os", "library", "packages"),
    [
        ("", DEBIAN, ("libnvidia-compute-580 580.1-1", "nvidia-dkms-580-open 580.1-1")),
        ("", f"{DEBIAN}/nvidia/current", ("libnvidia-ml1 580.1-1", "nvidia-kernel-dkms 580.1-1")),
        ("el", EL, ("libnvidia-ml 3:580.1-1", "kmod-nvidia-open-dkms 3:580.1-1")),
    ],
)
def test_a_usual_host_is_not_asked(
    host: FakeHost, shell: tuple[str, ...], os: str, library: str, packages: tuple[str, ...]
) -> None:
    if os:
        el(host)
    host.file(f"{library}/{ML}", "")
    host.file(f"{FOLDER}/{ML}", "")  # of a container's image
    loaded(host, on_disk=MODULE)
    host.has_packages(*packages)
    found = facts(host, shell)
    assert (found.foreign_driver, found.driver_files) == ("", ())
    asked = (host.commands / "asked").read_text()
    assert not {"-S", "-qf"} & set(asked.split())


@pytest.mark.parametrize(
    ("answers", "owners"),
    [
        (["libnvidia-ml1:amd64, acme: /usr/lib/x"], ("acme", "libnvidia-ml1")),
        (["diversion by glx-diversions from: /usr/lib/x", "a:amd64: /usr/lib/x"], ("a",)),
        (["dpkg-query: no path found matching pattern /lib/x", "acme: /usr/lib/x"], ("acme",)),
        (["dpkg-query: no path found matching pattern /lib/x"], ()),
        (["file /usr/lib64/x is not owned by any package", "acme-1.0+b"], ("acme-1.0+b",)),
        (["file /usr/lib64/x is not owned by any package"], ()),
        (["error: rpmdb: BDB0113 Thread died", "file /x is not owned by any package"], None),
        (["dpkg-query: error: failed to open package info file"], None),
        ([], None),
    ],
)
def test_answers(answers: list[str], owners: tuple[str, ...] | None) -> None:
    lines = [
        "answer of nothing",
        "asked library /usr/lib/x",
        *(f"answer {text}" for text in answers),
    ]
    (file,) = parse_driver_files(lines)
    assert (file.kind, file.path, file.owners) == ("library", "/usr/lib/x", owners)
