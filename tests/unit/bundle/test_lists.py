"""Packages that apt and dnf list become files of a bundle."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from gpufleet.bundle.lists import (
    LIST_ERRORS,
    HostFile,
    apt_packages,
    cached_repositories,
    has_package,
    list_file,
    listed_packages,
    read_host_files,
    repository_urls,
    valid_until,
    without_sha256,
)
from gpufleet.bundle.models import BundleFile

SUM, OTHER = "a" * 64, "b" * 64
NVIDIA = "http://a.example.com/repos/ubuntu2404/x86_64/"
UBUNTU = "http://b.example.com/ubuntu/"
# apt 2.6 with Acquire::ForceHash=SHA256
URIS = f"""\
'{NVIDIA}./nvidia-utils_580.95-1_amd64.deb' nvidia-utils_580.95-1_amd64.deb 2584 SHA256:{SUM}
'{UBUNTU}pool/d/dkms_1%253a3.0_all.deb' dkms_1%3a3.0_all.deb 12 SHA256:{OTHER}
'{UBUNTU}pool/g/gcc_12_amd64.deb' gcc_12_amd64.deb 12 MD5Sum:0123
The following NEW packages will be installed:
"""
# repolist -v of dnf 4.14, and of yum 3.4.3
REPOLIST = """\
Repo-id            : base
Repo-baseurl       : http://mirror/archive/el7/
Repo-id      : epel/7/x86_64
Repo-baseurl : http://b.example.com/epel/7/ (45 more)
""".splitlines()
CACHE = "/var/cache/dnf/base-0123456789abcdef/repodata"
PRIMARY = f"""<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm">
<package type="rpm"><name>dkms</name><arch>noarch</arch><version epoch="1" ver="3.0" rel="2.el9"/>
<checksum type="sha256" pkgid="YES">{SUM}</checksum><size package="6251" installed="1"/>
<location href="Packages/d/dkms-3.0-2.el9.noarch.rpm"/>
<format><rpm:license>GPLv2+</rpm:license></format></package>
<package type="rpm"><name>old</name><arch>noarch</arch><version epoch="0" ver="1" rel="1"/>
<checksum type="sha" pkgid="YES">123</checksum><size package="1"/><location href="old.rpm"/>
</package>
</metadata>""".encode()


def test_apt_names_packages_with_their_digest() -> None:
    driver, dkms = apt_packages(URIS.splitlines())
    assert driver.path == "a.example.com/repos/ubuntu2404/x86_64/nvidia-utils_580.95-1_amd64.deb"
    assert (driver.name, driver.version, driver.architecture) == (
        "nvidia-utils", "580.95-1", "amd64",
    )  # fmt: skip
    assert dkms == BundleFile(
        "b.example.com/ubuntu/pool/d/dkms_1%3a3.0_all.deb", OTHER, 12,
        "http://b.example.com/ubuntu/pool/d/dkms_1%253a3.0_all.deb", "package",
        "dkms", "1:3.0", "all",
    )  # fmt: skip


def test_a_package_without_a_sha256_is_named() -> None:
    assert without_sha256(URIS.splitlines()) == [f"{UBUNTU}pool/g/gcc_12_amd64.deb"]


def test_only_lists_of_archives_with_a_package_are_needed() -> None:
    place = f"list {SUM} 9 /var/tmp/x/1"
    lines = [
        f"{place} http://b.example.com/ubuntu/dists/noble/InRelease http://b.example.com/ubuntu/",
        f"{place} http://b.example.com/ubuntu2/dists/x/InRelease http://b.example.com/ubuntu2/",
        f"{place} {NVIDIA}./InRelease {NVIDIA}",
        "list a b c",
        "error nothing",
    ]
    packages = apt_packages(URIS.splitlines())
    used = (each for each in read_host_files(lines, "list") if has_package(each.base, packages))
    assert [list_file(each).path for each in used] == [
        "b.example.com/ubuntu/dists/noble/InRelease",
        "a.example.com/repos/ubuntu2404/x86_64/InRelease",
    ]


def test_repositories_have_the_address_that_dnf_and_yum_print() -> None:
    assert repository_urls(REPOLIST) == {
        "base": "http://mirror/archive/el7/",
        "epel": "http://b.example.com/epel/7/",
    }


def test_the_cache_of_dnf_has_the_metadata_of_known_repositories() -> None:
    files = [
        HostFile(f"{CACHE}/repomd.xml", SUM, 1, "-"),
        HostFile(f"{CACHE}/{OTHER}-primary.xml.gz", OTHER, 2, "-"),
        HostFile("/var/cache/dnf/gone-0123456789abcdef/repodata/repomd.xml", SUM, 1, "-"),
        HostFile("/var/cache/dnf/base.solv", SUM, 1, "-"),
    ]
    (found,) = cached_repositories(files, repository_urls(REPOLIST))
    assert [each.url for each in found.files] == [
        "http://mirror/archive/el7/repodata/repomd.xml",
        f"http://mirror/archive/el7/repodata/{OTHER}-primary.xml.gz",
    ]
    assert found.primary == found.files[1]
    package = BundleFile("mirror/archive/el7/x.rpm", SUM, 1, "", "package")
    assert has_package(found.url, [package])
    assert not has_package("http://mirror/archive/el", [package])


@pytest.mark.parametrize(
    ("name", "pack"), [("primary.xml", bytes), ("primary.xml.gz", gzip.compress)],
)  # fmt: skip
def test_a_list_names_packages_by_their_digest(name: str, pack: Callable[[bytes], bytes]) -> None:
    found = listed_packages("http://mirror/el9/", pack(PRIMARY), name)
    assert found == {
        SUM: BundleFile(
            "mirror/el9/Packages/d/dkms-3.0-2.el9.noarch.rpm", SUM, 6251,
            "http://mirror/el9/Packages/d/dkms-3.0-2.el9.noarch.rpm", "package",
            "dkms", "1:3.0-2.el9", "noarch", "GPLv2+",
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"<metadata>", "primary.xml"),
        (b"no xml", "primary.xml.gz"),
        (gzip.compress(PRIMARY)[:-20], "primary.xml.gz"),
        (b"", "primary.xml.gz"),
        (PRIMARY.replace(b'"6251"', b'"many"'), "primary.xml"),
    ],
)
def test_a_damaged_list_is_refused(data: bytes, name: str) -> None:
    with pytest.raises(LIST_ERRORS):
        listed_packages("http://mirror/el9/", data, name)


def test_a_package_whose_place_leads_out_of_its_repository_has_none() -> None:
    wrong = PRIMARY.replace(b"Packages/d", b"../../../etc")
    (found,) = listed_packages("http://mirror/el9/", wrong, "primary.xml").values()
    assert found.path == ""


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Origin: Debian\nValid-Until: Sat, 05 Dec 2026 20:31:31 UTC\n", "2026-12-05 20:31"),
        ("Valid-Until: Sat, 05 Dec 2026 20:31:31 +0000\n", "2026-12-05 20:31"),
        ("Origin: Ubuntu\nDate: Sat, 05 Dec 2026 20:31:31 UTC\n", ""),
        ("Valid-Until: some day\n", ""),
        ("Description: Valid-Until: Sat, 05 Dec 2026 20:31:31 UTC\n", ""),
    ],
)
def test_a_list_of_apt_says_until_when_it_is_valid(text: str, date: str) -> None:
    found = valid_until(text)
    assert (f"{found:%Y-%m-%d %H:%M}" if found else "") == date
