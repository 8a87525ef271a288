"""The tree: its repositories, in NVIDIA's layout, and additional files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpufleet_sandbox.mirror import archive, dcgm, drivers, toolkit
from gpufleet_sandbox.mirror.contents import contents, distribution, distributions
from gpufleet_sandbox.mirror.model import File, Package, Repository
from gpufleet_sandbox.mirror.payload import text

CUDA = "compute/cuda/repos"
IMAGE_PROGRAM = "images/dcgm-exporter"  # for tests that build an image of it
ARCHIVES = "archives"  # of discontinued repositories: the path of node_archives_url
TOOLKIT = "libnvidia-container"


def repositories(
    work: Path, nvidia_smi: Path, kernels: Path, programs: dict[str, Path], key: bytes
) -> list[Repository]:
    """Every repository of the mirror. `programs`: toolkit version -> folder; `key`: binary."""
    stable = {
        "deb": [p for v, f in programs.items() for p in toolkit.packages(v, "deb", f, work)],
        "rpm": [p for v, f in programs.items() for p in toolkit.packages(v, "rpm", f, work)],
    }
    # NVIDIA's CUDA repositories also have the toolkit, often an older version: do not install it.
    older = [p for p in stable["deb"] if p.version.startswith(min(programs))]
    found = [
        Repository(f"{TOOLKIT}/stable/deb/amd64", "deb", tuple(stable["deb"]),
                   "https://nvidia.github.io/libnvidia-container", "vendor", "gpgkey"),
        Repository(f"{TOOLKIT}/stable/rpm/x86_64", "rpm", tuple(stable["rpm"]),
                   "libnvidia-container", "vendor", "gpgkey"),
    ]  # fmt: skip
    for code in distributions():
        entry = distribution(code)
        packages = drivers.packages(code, entry.style, work, nvidia_smi)
        packages += dcgm.packages(code, entry.style, work)
        extra = {f"cuda-{code}.repo": _repo_file(code, entry.key)}
        if entry.style == "deb":
            packages += [_keyring(code, key), *older]
            extra = {f"cuda-{code}.pin": text("conf/cuda-repository-pin-600")}
        found.append(
            Repository(
                f"{CUDA}/{code}/x86_64", entry.style, tuple(packages), "NVIDIA CUDA", "vendor",
                entry.key, extra, sign_packages=entry.style == "rpm",
            )
        )  # fmt: skip
    for name in contents()["archives"]:
        packages = archive.packages(name, kernels)
        found.append(
            Repository(
                f"archive/{name}", packages[0].format, tuple(packages), archive.LABELS[name],
                "archive", "archive-key.asc", sign_packages=True,
            )
        )  # fmt: skip
        if name == "el7":
            found += _archives_of_el7(packages)
    return found


def _archives_of_el7(packages: list[Package]) -> Iterator[Repository]:
    """The same packages in the layout of vault.centos.org and Fedora's archive."""
    entry = contents()["archives"]["el7"]
    first = next(iter(entry["kernels"].values()))

    def part(package: Package) -> str:
        if package.name.startswith("kernel") and package.version != first:
            return "updates"
        return next((name for name in ("epel", "extras") if package.name in entry[name]), "os")

    for name in ("os", "updates", "extras", "epel"):
        folder = "epel/7" if name == "epel" else f"7.9.2009/{name}"
        key = "../../RPM-GPG-KEY-EPEL-7" if name == "epel" else "archive-key.asc"
        ours = tuple(package for package in packages if part(package) == name)
        yield Repository(
            f"{ARCHIVES}/{folder}/x86_64", "rpm", ours, "CentOS", "archive", key,
            sign_packages=True,
        )  # fmt: skip


def extra_files(key: bytes) -> dict[str, bytes]:
    """Additional files: the toolkit's key, list and repo file. `key` is armored."""
    url = f"{contents()['base_url']}/{TOOLKIT}"
    apt = f"deb {url}/stable/deb/$(ARCH) /\n#deb {url}/experimental/deb/$(ARCH) /\n"
    sections = [
        f"[{name}]\nname={name}\nbaseurl={url}/{path}/rpm/$basearch\nrepo_gpgcheck=1\n"
        f"gpgcheck=0\nenabled={enabled}\ngpgkey={url}/gpgkey\n"
        for name, path, enabled in (
            ("nvidia-container-toolkit", "stable", 1),
            ("nvidia-container-toolkit-experimental", "experimental", 0),
        )
    ]
    return {
        f"{TOOLKIT}/gpgkey": key,
        f"{TOOLKIT}/stable/deb/nvidia-container-toolkit.list": apt.encode(),
        f"{TOOLKIT}/stable/rpm/nvidia-container-toolkit.repo": "\n".join(sections).encode(),
    }


def _keyring(code: str, key: bytes) -> Package:
    """cuda-keyring: the key, the source list, and on Ubuntu the pin file."""
    keyring = "/usr/share/keyrings/cuda-archive-keyring.gpg"
    url = f"{contents()['base_url']}/{CUDA}/{code}/x86_64/"
    files = {
        keyring: File(key),
        f"/etc/apt/sources.list.d/cuda-{code}-x86_64.list": File(
            f"deb [signed-by={keyring}] {url} /\n", config=True
        ),
    }
    if code.startswith("ubuntu"):
        pin = File(text("conf/cuda-repository-pin-600"), config=True)
        files["/etc/apt/preferences.d/cuda-repository-pin-600"] = pin
    summary = f"key and source list of the CUDA repository {code}/x86_64"
    return Package("deb", "cuda-keyring", "1.1-1", summary, arch="all", files=files)


def _repo_file(code: str, key_file: str) -> str:
    name = f"cuda-{code}-x86_64"
    url = f"{contents()['base_url']}/{CUDA}/{code}/x86_64"
    return f"[{name}]\nname={name}\nbaseurl={url}\nenabled=1\ngpgcheck=1\ngpgkey={url}/{key_file}\n"
