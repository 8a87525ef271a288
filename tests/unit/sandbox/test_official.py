"""Official binaries from a server on loopback: good, missing, damaged, slow, and in the cache."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from pathlib import Path

import pytest

from gpufleet_sandbox.cluster import build, official
from gpufleet_sandbox.cluster.cached import is_verified, mark_verified
from gpufleet_sandbox.cluster.modules import progress_line
from gpufleet_sandbox.cluster.official import Limits, NotFetched, fetch
from gpufleet_sandbox.cluster.programs import SERVERS
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.errors import SandboxError
from tests.unit.sandbox.official_setup import PATH, PROGRAM, Site, binary
from tests.unit.sandbox.official_setup import site as site  # a fixture


def test_a_fetched_binary_is_complete_and_executable(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "there" / "kube-apiserver"
    fetch(binary(PROGRAM), target)
    assert target.read_bytes() == PROGRAM
    assert target.stat().st_mode & 0o111 == 0o111
    assert site.requests == [PATH]


def test_a_binary_from_an_archive(site: Site, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name, content in (("a/other", b"no"), ("a/kube-apiserver", PROGRAM)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            files.addfile(entry, io.BytesIO(content))
    site.files[PATH] = packed.getvalue()
    fetch(binary(packed.getvalue(), "a/kube-apiserver"), tmp_path / "there" / "kube-apiserver")
    assert (tmp_path / "there" / "kube-apiserver").read_bytes() == PROGRAM


@pytest.mark.parametrize("content", [b"", PROGRAM[:-1], PROGRAM + b"#", b"<html>login</html>"])
def test_a_damaged_binary_is_rejected(site: Site, tmp_path: Path, content: bytes) -> None:
    site.files[PATH] = content
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(NotFetched, match=found):
        fetch(binary(PROGRAM), tmp_path / "there" / "kube-apiserver")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_binary_is_reported_with_its_url(site: Site, tmp_path: Path) -> None:
    del site.files[PATH]
    with pytest.raises(NotFetched, match=re.escape(PATH) + ".*404"):
        fetch(binary(PROGRAM), tmp_path / "there" / "kube-apiserver")
    assert list(tmp_path.iterdir()) == []


def test_a_slow_download_is_aborted(site: Site, tmp_path: Path) -> None:
    site.drip = True
    with pytest.raises(NotFetched, match=r"is too slow: .* KiB/s"):
        fetch(binary(PROGRAM), tmp_path / "there" / "kube-apiserver", Limits(10**9, after=0.1))
    assert list(tmp_path.iterdir()) == []


def test_no_server_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(official.SITE, "http://127.0.0.1:1")
    with pytest.raises(NotFetched, match="refused"):
        fetch(binary(PROGRAM), tmp_path / "there" / "kube-apiserver")


def test_servers_are_fetched_by_their_digests_and_not_built(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kubernetes_servers` from a site with the official layout; a second call fetches nothing."""
    monkeypatch.setattr(official, "_architecture", lambda: "amd64")
    layout = "/release/v1.36.3/bin/linux/amd64/{}"
    site.files = {layout.format(name): PROGRAM for name in SERVERS}
    digest = hashlib.sha256(PROGRAM).hexdigest()
    known = official.official().model_copy(deep=True)
    for name in SERVERS:
        dict.__setitem__(known.kubernetes.releases["1.36.3"].amd64, name, digest)  # type: ignore[index]
    monkeypatch.setattr(official, "official", lambda: known)
    printed: list[str] = []
    found = build.kubernetes_servers(SERVERS, "1.36.3", tmp_path, printed.append)
    assert all(path.read_bytes() == PROGRAM for path in found.values())
    assert not [line for line in printed if "building" in line]
    requests = list(site.requests)
    assert sorted(requests) == sorted(site.files)
    build.kubernetes_servers(SERVERS, "1.36.3", tmp_path, printed.append)
    assert site.requests == requests


def test_the_reason_for_a_build_is_printed_before_it(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files = {}
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "none"))  # empty, so a build fails
    printed: list[str] = []
    with pytest.raises(SandboxError, match="GF654"):
        build.kubernetes_servers(SERVERS, "1.36.3", tmp_path, printed.append)
    places = [number for number, line in enumerate(printed) if "404" in line]
    assert len(places) == len(SERVERS)
    assert max(places) < printed.index(next(line for line in printed if "building" in line))
    assert not (tmp_path / "kubernetes-1.36.3").exists()


DAMAGES = [b"", PROGRAM[:10], b"#!/bin/sh\necho Kubernetes v1.36.30 is no better\n"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_program_is_detected_without_running_it(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "kube-apiserver"
    assert not is_verified(path)
    path.write_bytes(PROGRAM)
    path.chmod(0o755)
    assert not is_verified(path), "not recorded"
    mark_verified(path, "1.36.3")
    assert is_verified(path)
    os.utime(path)
    assert is_verified(path), "copied, with the same content"
    path.write_bytes(damage)
    assert not is_verified(path)
    assert path.read_bytes() == damage, "the check does not change it"


def test_a_program_that_prints_no_version_is_verified_by_its_record(tmp_path: Path) -> None:
    path = tmp_path / "node-problem-detector"
    path.write_bytes(b"first")
    mark_verified(path, "")
    assert is_verified(path)
    path.write_bytes(b"second")
    assert not is_verified(path)


def test_a_program_that_prints_another_version_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "kube-apiserver"
    path.write_bytes(PROGRAM)
    path.chmod(0o755)
    with pytest.raises(SandboxError, match=r"GF602.*expected version 1\.35\.0"):
        mark_verified(path, "1.35.0")
    assert not is_verified(path)


def test_a_damaged_program_is_fetched_again(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = binary(PROGRAM)
    monkeypatch.setattr(official, "server", lambda name, version: source)
    printed: list[str] = []
    found = build.kubernetes_servers(["kube-apiserver"], "1.36.3", tmp_path, printed.append)
    found["kube-apiserver"].write_bytes(PROGRAM[:5])
    assert not build.have_server("kube-apiserver", "1.36.3", tmp_path)
    build.kubernetes_servers(["kube-apiserver"], "1.36.3", tmp_path, printed.append)
    assert found["kube-apiserver"].read_bytes() == PROGRAM
    assert any("is damaged" in line for line in printed)
    assert build.have_server("kube-apiserver", "1.36.3", tmp_path)


def test_a_too_large_download_is_aborted(site: Site, tmp_path: Path) -> None:
    with pytest.raises(NotFetched, match="more than 8 bytes"):
        fetch(binary(PROGRAM), tmp_path / "there" / "kube-apiserver", Limits(most=8))


@pytest.mark.parametrize("content", [b"no archive", None])
def test_an_archive_without_the_program(site: Site, tmp_path: Path, content: bytes | None) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz"):
        pass
    site.files[PATH] = content or packed.getvalue()
    with pytest.raises(NotFetched, match="a/kube-apiserver is not in the archive"):
        fetch(binary(site.files[PATH], "a/kube-apiserver"), tmp_path / "there" / "program")


@pytest.mark.parametrize("where", ["nonsense", "http://user:s3cret@127.0.0.1:1"])
def test_an_unreachable_mirror_is_reported_without_its_credentials(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(official.SITE, where)
    with pytest.raises(NotFetched, match="cannot be read") as caught:
        fetch(binary(PROGRAM), tmp_path / "there" / "program")
    assert "s3cret" not in str(caught.value)


def test_digests_belong_to_used_versions() -> None:
    """A version that changes without its digest would silently be built from source."""
    data = official.official()
    for name, program in data.programs.items():
        assert versions().programs[name].version == program.version
    assert set(data.kubernetes.releases) <= set(versions().kubernetes.releases.values())
    assert "1.36.3" in data.kubernetes.releases


def test_progress_of_a_build() -> None:
    assert progress_line("etcd", 400, 1000, 60) == (
        "building etcd: 38% of 1000 packages, about 2 min left"
    )
    assert progress_line("etcd", 0, 1000, 15) == "building etcd: 0% of 1000 packages"
