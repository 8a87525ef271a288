"""Imitations of the distributions' archives: kernels, their headers, and other dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpufleet_sandbox.mirror.contents import contents
from gpufleet_sandbox.mirror.model import File, Package
from gpufleet_sandbox.mirror.payload import text

# Required by initramfs-tools and DKMS.
CONFIG = "CONFIG_MODULES=y\nCONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\n"
LABELS = {"ubuntu2204": "Ubuntu", "ubuntu2404": "Ubuntu", "debian12": "Debian", "el7": "CentOS"}
HEADERS = {
    "include/generated/utsrelease.h": '#define UTS_RELEASE "{release}"\n',
    "include/config/kernel.release": "{release}\n",
    ".config": CONFIG,
    "Makefile": "# headers of {release}\n",
}


def packages(name: str, kernels: Path) -> list[Package]:
    """Packages of the archive `name`; `kernels`: a folder with modules of each release."""
    entry = contents()["archives"][name]
    if name == "el7":
        return [*_el7_kernels(entry["kernels"], kernels), *_empty_rpms(entry["packages"])]
    return list(_deb_kernels(name, entry["kernels"], kernels))


def _deb_kernels(name: str, releases: Mapping[str, str], kernels: Path) -> Iterator[Package]:
    """Image and headers of every kernel, and metapackages for the newest."""
    flavour = "generic" if name.startswith("ubuntu") else "amd64"
    for release, version in releases.items():
        headers, image = f"linux-headers-{release}", f"linux-image-{release}"
        build = f"/usr/src/linux-headers-{release}"
        yield Package(
            "deb",
            headers,
            version,
            f"headers of the kernel {release}",
            files=_headers(build, release),
            links={f"/lib/modules/{release}/build": build},
            scripts={"postinst": text("scripts/headers.postinst", KERNEL=release)},
        )
        files = _modules(kernels, release) | {
            f"/boot/vmlinuz-{release}": File("imitation\n"),
            f"/boot/config-{release}": File(CONFIG),
        }
        modules = f"linux-modules-{release}"
        relations: dict[str, tuple[str, ...]] = {}
        if flavour == "generic":  # Ubuntu has the modules in a separate package
            yield Package("deb", modules, version, f"modules of the kernel {release}", files=files)
            files, relations = {}, {"Depends": (f"{modules} (= {version})",)}
        script = text("scripts/image.postinst", KERNEL=release)
        summary = f"kernel {release}"
        yield Package(
            "deb", image, version, summary, relations=relations, files=files,
            scripts={"postinst": script},
        )  # fmt: skip
        for meta, target in (("headers", headers), ("image", image)):
            depends = (f"{target} (= {version})",)
            yield _deb_meta(f"linux-{meta}-{flavour}", version, depends)
        if flavour == "generic":
            both = tuple(f"linux-{part}-generic (= {version})" for part in ("image", "headers"))
            yield _deb_meta("linux-generic", version, both)


def _deb_meta(name: str, version: str, depends: tuple[str, ...]) -> Package:
    return Package("deb", name, version, "newest kernel", relations={"Depends": depends})


def _el7_kernels(releases: Mapping[str, str], kernels: Path) -> Iterator[Package]:
    for release, version in releases.items():
        folder = f"/usr/src/kernels/{release}"
        post = (
            f"depmod {release}\n"
            f"if command -v dracut > /dev/null; then\n"
            f"dracut --force /boot/initramfs-{release}.img {release}\nfi"
        )
        yield Package(
            "rpm", "kernel", version, f"kernel {release}",
            relations={"Provides": (f"kernel-uname-r = {release}",)},
            files=_modules(kernels, release, "/usr/lib") | {
                f"/boot/vmlinuz-{release}": File("imitation\n"),
                f"/boot/config-{release}": File(CONFIG),
            },
            scripts={"post": post},
        )  # fmt: skip
        yield Package(
            "rpm", "kernel-devel", version, f"headers of the kernel {release}",
            relations={
                "Provides": (
                    f"kernel-devel-uname-r = {release}",
                    f"kernel-devel-x86_64 = {version}",
                )
            },
            files=_headers(folder, release),
            # On EL the link is part of the kernel; here the image may have none.
            scripts={
                "post": f"ln -sfn {folder} /lib/modules/{release}/build",
                "postun": f'[ "$1" != 0 ] || rm -f /lib/modules/{release}/build',
            },
        )  # fmt: skip
        note = {f"/usr/share/doc/kernel-headers-{version}/README": File("imitation\n")}
        yield Package("rpm", "kernel-headers", version, "kernel headers for user space", files=note)


def _empty_rpms(versions: Mapping[str, str]) -> Iterator[Package]:
    """Packages for the package database only: the image already has their files."""
    for name, version in versions.items():
        note = {f"/usr/share/doc/{name}-sandbox/README": File("The image has the files.\n")}
        yield Package("rpm", name, version, f"{name}, for the package database", files=note)


def _headers(folder: str, release: str) -> dict[str, File]:
    return {
        f"{folder}/{path}": File(content.format(release=release))
        for path, content in HEADERS.items()
    }


def _modules(kernels: Path, release: str, prefix: str = "") -> dict[str, File]:
    """/lib/modules/<release>: the simulated machine's modules of that kernel."""
    tree = kernels / release
    return {
        f"{prefix}/lib/modules/{release}/{path.relative_to(tree)}": File(path)
        for path in sorted(tree.rglob("*"))
        if path.is_file()
    }
