"""Packages that a host lists and downloads become files of a bundle, or are refused by name."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FactBase

from gpufleet.bundle.models import BundleFile
from gpufleet.bundle.operations.gather import (
    PIECE_BYTES,
    FilePiece,
    PackageRequest,
    gather_packages,
    gather_present,
    list_kubeadm_images,
)
from gpufleet.bundle.plan import PresentPackages
from gpufleet.core.stopped import Stopped

BIG = b"x" * (PIECE_BYTES + 1)
BASE, NVIDIA = "http://b.example.com/ubuntu/", "http://a.example.com/cuda/ubuntu2404/"
APT = PackageRequest("apt", (("driver=1", "gcc"), ("toolkit=1",)), "dkms", "/tmp/x")
DNF = PackageRequest("dnf", (("driver-1",),), "", "/tmp/x")
CACHE = "/var/cache/dnf/cuda-0123456789abcdef/repodata"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class FakeHost:
    """Answers the room's facts. `files`: path -> content; `lines`: of each script."""

    def __init__(self, files: dict[str, bytes], **lines: Sequence[str]) -> None:
        self.files, self.lines = files, lines
        self.fetched: list[str] = []  # digests that apt downloads
        self.read: list[str] = []

    def __call__(self, fact: type[FactBase[Any]], *words: Any) -> Any:
        if fact is FilePiece:
            path, number = words
            self.read.append(path)
            start = number * PIECE_BYTES
            return self.files.get(path, b"")[start : start + PIECE_BYTES]
        script, place, *rest = words
        if script == "apt_fetch":
            self.fetched += rest[1::2]
        return [line.replace("PLACE", place) for line in self.lines.get(script, ())]


def ubuntu(**changes: bytes) -> FakeHost:
    """A host with one package of each archive, the second one in two pieces."""
    files = {f"/tmp/x/{sha256(data)}": data for data in (b"driver", BIG)}
    files |= {"/tmp/x/lists/1": b"signed", "/tmp/x/lists/2": b"other"}
    files |= {f"/tmp/x/{name}": data for name, data in changes.items()}
    return FakeHost(
        files,
        apt_closure=[
            f"'{NVIDIA}./driver_1_amd64.deb' driver_1_amd64.deb 6 SHA256:{sha256(b'driver')}",
            f"'{BASE}pool/gcc_1_amd64.deb' gcc_1_amd64.deb {len(BIG)} SHA256:{sha256(BIG)}",
        ],
        apt_lists=[
            f"list {sha256(b'signed')} 6 PLACE/1 {NVIDIA}./InRelease {NVIDIA}",
            f"list {sha256(b'other')} 5 PLACE/2 http://c.example.com/x/InRelease "
            "http://c.example.com/x/",
        ],
    )


def rhel(packages: dict[str, bytes], listed: bytes | None = None) -> FakeHost:
    """A host with packages, of which the repository lists the content `driver`."""
    primary = gzip.compress(
        f"""<metadata xmlns="http://linux.duke.edu/metadata/common"><package><name>driver</name>
        <checksum type="sha256">{sha256(b"driver")}</checksum><size package="6"/>
        <location href="driver-1.rpm"/></package></metadata>""".encode()
    )
    data = {f"{CACHE}/0-primary.xml.gz": listed or primary, f"{CACHE}/repomd.xml": b"signed"}
    files = {f"/tmp/x/0/packages/{name}": content for name, content in packages.items()}
    lines = [f"package {sha256(c)} {len(c)} {path} - -" for path, c in files.items()]
    lines += [f"metadata {sha256(c)} {len(c)} {path} - -" for path, c in data.items()]
    lines += ["Repo-id : cuda", f"Repo-baseurl : {NVIDIA}"]
    return FakeHost({**files, **data}, rpm_closure=lines)


def stopped(folder: Path, request: PackageRequest, host: FakeHost) -> str:
    """The only finding, as text."""
    with pytest.raises(Stopped) as stop:
        gather_packages(folder, request, host)
    (found,) = stop.value.findings
    return str(found)


def test_packages_and_lists_of_their_archives_arrive(tmp_path: Path) -> None:
    files = gather_packages(tmp_path, APT, ubuntu())
    assert {file.path: file.sort for file in files} == {
        "a.example.com/cuda/ubuntu2404/driver_1_amd64.deb": "package",
        "b.example.com/ubuntu/pool/gcc_1_amd64.deb": "package",
        "a.example.com/cuda/ubuntu2404/InRelease": "metadata",
    }
    for file in files:
        assert sha256((tmp_path / file.path).read_bytes()) == file.sha256


def test_a_second_run_downloads_only_what_is_missing(tmp_path: Path) -> None:
    whole = gather_packages(tmp_path, APT, ubuntu())
    again = ubuntu()
    assert gather_packages(tmp_path, APT, again) == whole
    assert (again.fetched, again.read) == ([], [])
    (tmp_path / whole[0].path).write_bytes(b"damage")
    assert gather_packages(tmp_path, APT, again) == whole
    assert again.fetched == [sha256(b"driver")]


def test_a_package_that_changes_on_its_way_is_not_kept(tmp_path: Path) -> None:
    host = ubuntu(**{sha256(b"driver"): b"rootkit"})
    assert "driver_1_amd64.deb" in stopped(tmp_path, APT, host)
    assert not (tmp_path / "a.example.com").exists()


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("error Unable to locate package gcc", "Unable to locate package gcc"),
        ("'http://b.example.com/old.deb' old.deb 5 MD5Sum:01", "http://b.example.com/old.deb"),
        (f"'file:///srv/x.deb' x.deb 5 SHA256:{'a' * 64}", "file:///srv/x.deb"),
        (f"'http://b.example.com/../../x.deb' x.deb 5 SHA256:{'a' * 64}", "x.deb"),
    ],
)
def test_what_apt_cannot_vouch_for_is_refused(tmp_path: Path, line: str, named: str) -> None:
    assert named in stopped(tmp_path, APT, FakeHost({}, apt_closure=[line]))


@pytest.mark.parametrize("place", ["user:hunter2@b.example.com/x", "b.example.com/x?t=hunter2"])
def test_a_login_in_an_address_is_refused_and_not_shown(tmp_path: Path, place: str) -> None:
    lines = [f"'http://{place}.deb' x.deb 5 SHA256:{'a' * 64}"]
    for host in (FakeHost({}, apt_closure=lines),
                 FakeHost({}, apt_closure=[f"error 401 at http://{place}"])):  # fmt: skip
        shown = stopped(tmp_path, APT, host)
        assert "b.example.com" in shown
        assert "hunter2" not in shown


def test_packages_and_metadata_of_rpm_repositories_arrive(tmp_path: Path) -> None:
    files = gather_packages(tmp_path, DNF, rhel({"driver-1.rpm": b"driver"}))
    assert [file.path.removeprefix("a.example.com/cuda/ubuntu2404/") for file in files] == [
        "driver-1.rpm",
        "repodata/0-primary.xml.gz",
        "repodata/repomd.xml",
    ]
    assert (tmp_path / files[0].path).read_bytes() == b"driver"


@pytest.mark.parametrize(
    ("host", "named"),
    [
        (rhel({"driver-1.rpm": b"another"}), "driver-1.rpm"),
        (rhel({"driver-1.rpm": b"driver"}, gzip.compress(b"<html>")), NVIDIA),
        (rhel({"driver-1.rpm": b"driver"}, b"zstd"), NVIDIA),
        (FakeHost({}, rpm_closure=["error Nothing provides gcc"]), "Nothing provides gcc"),
    ],
)
def test_what_no_list_of_dnf_names_is_refused(tmp_path: Path, host: FakeHost, named: str) -> None:
    assert named in stopped(tmp_path, DNF, host)
    assert not any(path.name.endswith(".rpm") for path in tmp_path.rglob("*"))


PRESENT = PresentPackages("driver", ("driver",), ("driver=580.1",))


def test_versions_that_a_repository_has_no_longer_are_named_as_lacking(tmp_path: Path) -> None:
    gone = FakeHost({}, apt_closure=["error Version '580.1' for 'driver' was not found"])
    files, (lacking,) = gather_present(tmp_path, APT, PRESENT, gone)
    assert (files, "580.1" in lacking.why) == ([], True)
    there = ubuntu()
    there.files = {path.replace("/x/", "/x/driver/"): data for path, data in there.files.items()}
    files, none = gather_present(tmp_path, APT, PRESENT, there)
    assert ([each.name for each in files[:2]], none) == (["driver", "gcc"], ())
    broken = ubuntu(**{sha256(b"driver"): b"rootkit"})
    with pytest.raises(Stopped, match="driver_1_amd64"):
        gather_present(tmp_path / "other", APT, PRESENT, broken)


KUBEADM = BundleFile(
    "pkgs.k8s.io/deb/kubeadm_1.36.3-1.1_amd64.deb", sha256(b"kubeadm"), 7, "https://x/kubeadm.deb",
    "package", "kubeadm", "1.36.3-1.1",
)  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "file", "asked"),
    [
        (APT, KUBEADM, ["/tmp/x", KUBEADM.sha256]),
        (DNF, replace(KUBEADM, path="x/kubeadm-1.36.3.rpm"), ["/tmp/x", "kubeadm-1.36.3.rpm"]),
    ],
)
def test_kubeadm_itself_names_the_images_of_nodes(
    request_: PackageRequest, file: BundleFile, asked: list[str]
) -> None:
    host = FakeHost({}, kubeadm_images=["image registry.k8s.io/pause:3.10", "image a/b:1"])
    scripts: list[list[str]] = []

    def ask(fact: type[FactBase[Any]], script: str, *words: Any) -> Any:
        scripts.append([script, *words])
        return host(fact, script, *words)

    assert list_kubeadm_images([file], request_, ask) == (
        ["registry.k8s.io/pause:3.10", "a/b:1"],
        (),
    )
    assert ["kubeadm_images", *asked] in scripts
    assert list_kubeadm_images([], request_, ask) == ([], ())


def test_images_of_a_kubeadm_that_does_not_run_are_named_as_lacking() -> None:
    host = FakeHost({}, kubeadm_images=["error kubeadm lists no images: Exec format error"])
    images, (lacking,) = list_kubeadm_images([KUBEADM], APT, host)
    assert (images, lacking.what) == ([], "images of Kubernetes")
    assert "Exec format error" in lacking.why


def test_a_piece_is_read_from_a_host_as_base64() -> None:
    assert FilePiece().process(["no frame"]) == b""
