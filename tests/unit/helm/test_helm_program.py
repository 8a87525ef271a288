"""helm on the machine that gpufleet runs on: found, rejected, or downloaded by checksum."""

from __future__ import annotations

import hashlib
import io
import platform
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpufleet.helm.operations.program import find_helm
from gpufleet.helm.release import HelmVersion
from gpufleet.helm.strategy import HelmCatalog, helm_catalog
from gpufleet.kube.operations.access import ClusterProblem

SYSTEM = f"{platform.system().lower()}-amd64"


def program(path: Path, said: str = "v3.22.0+gabc", code: int = 0) -> Path:
    path.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    path.chmod(0o755)
    return path


def archive(text: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as files:
        entry = tarfile.TarInfo(f"{SYSTEM}/helm")
        entry.size = len(text)
        files.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


ARCHIVE = archive("#!/bin/sh\necho v3.21.3+g1\n")
NAME = f"helm-v{helm_catalog().download.version}-{SYSTEM}.tar.gz"
DEAD = "http://127.0.0.1:9/mirror"


@pytest.fixture
def served() -> Iterator[str]:
    """The URL of a folder with the archive."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            there = self.path == f"/mirror/{NAME}"
            self.send_response(200 if there else 404)
            self.end_headers()
            self.wfile.write(ARCHIVE if there else b"")

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, so that the output of the tests stays readable."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mirror"
    server.shutdown()
    server.server_close()


def catalog(checksum: str) -> HelmCatalog:
    real = helm_catalog()
    download = real.download.model_copy(update={"sha256": {SYSTEM: checksum}})
    return real.model_copy(update={"download": download})


GOOD = catalog(hashlib.sha256(ARCHIVE).hexdigest())


@pytest.fixture(autouse=True)
def bare_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PATH without helm, on a machine of the archive's platform."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def code_of(wanted: str, known: HelmCatalog, cache: Path, site: str = DEAD) -> tuple[str, str]:
    with pytest.raises(ClusterProblem) as caught:
        find_helm(wanted, known, cache, site)
    (found,) = caught.value.findings
    return found.code, found.message


def test_the_one_that_is_named(tmp_path: Path) -> None:
    found = find_helm(str(program(tmp_path / "h", "v4.2.4")), helm_catalog(), tmp_path)
    assert (found.path, found.version) == (tmp_path / "h", HelmVersion(4, 2))


def test_the_one_on_path(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "helm")
    assert find_helm("", helm_catalog(), tmp_path).path == tmp_path / "bin" / "helm"


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("v3.12.3", 0, "expected helm 3.13 or newer, found 3.12"),
        ("nonsense", 0, "it does not report a version: nonsense"),
        ("v3.22", 1, "it does not report a version"),
    ],
)
def test_one_that_cannot_be_used(tmp_path: Path, said: str, code: int, words: str) -> None:
    path = program(tmp_path / "h", said, code)
    found, message = code_of(str(path), helm_catalog(), tmp_path)
    assert (found, words in message) == ("GF854", True)


def test_one_that_gives_no_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpufleet.helm.operations.program.ANSWERS_IN", 1.0)
    path = tmp_path / "h"
    path.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 60\n")
    path.chmod(0o755)
    code, message = code_of(str(path), helm_catalog(), tmp_path)
    assert (code, "no response within 1.0 s" in message) == ("GF854", True)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_one_that_is_not_there(tmp_path: Path) -> None:
    assert code_of(str(tmp_path / "none"), helm_catalog(), tmp_path)[0] == "GF854"


def test_it_is_fetched_once_and_checked(tmp_path: Path, served: str) -> None:
    found = find_helm("", GOOD, tmp_path / "cache", served)
    assert found.version == HelmVersion(3, 21)
    assert found.path.stat().st_mode & 0o7777 == 0o755
    there = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert sorted(there) == sorted([found.path, found.path.with_name(NAME)])
    before = found.path.stat().st_mtime_ns
    assert find_helm("", GOOD, tmp_path / "cache", DEAD) == found
    assert found.path.stat().st_mtime_ns == before


@pytest.mark.claim(
    "The downloaded helm is checked by its checksum at each use.",
    level=1,
)
def test_what_is_kept_is_checked_at_each_use(tmp_path: Path, served: str) -> None:
    cache = tmp_path / "cache"
    path = find_helm("", GOOD, cache, served).path
    sound = path.read_bytes()
    path.write_text("#!/bin/sh\necho v3.21.3+evil\n")
    assert find_helm("", GOOD, cache, DEAD).path.read_bytes() == sound
    kept = path.with_name(NAME)
    kept.write_bytes(archive("#!/bin/sh\necho v3.21.3+evil\n"))
    path.write_text("#!/bin/sh\necho v3.21.3+evil\n")
    assert code_of("", GOOD, cache)[0] == "GF854"
    assert find_helm("", GOOD, cache, served).path.read_bytes() == sound
    assert kept.read_bytes() == ARCHIVE


def test_one_on_path_that_is_too_old_is_not_changed_and_ours_is_used(
    tmp_path: Path, served: str
) -> None:
    (tmp_path / "bin").mkdir()
    old = program(tmp_path / "bin" / "helm", "v3.5.0")
    found = find_helm("", GOOD, tmp_path / "cache", served)
    assert found.path.is_relative_to(tmp_path / "cache")
    assert "v3.5.0" in old.read_text()
    code, message = code_of("", GOOD, tmp_path / "other")
    assert (code, "found 3.5" in message) == ("GF854", True)


def test_a_download_with_another_checksum_is_not_used(tmp_path: Path, served: str) -> None:
    code, message = code_of("", catalog("ab" * 32), tmp_path, served)
    assert (code, "ab" * 32 in message) == ("GF812", True)
    assert not list(tmp_path.rglob("helm*"))


def test_a_download_that_fails(tmp_path: Path, served: str) -> None:
    for site, words in ((DEAD, "Connection refused"), (f"{served}/other", "it answers 404")):
        code, message = code_of("", GOOD, tmp_path, site)
        assert (code, site in message, words in message) == ("GF854", True, True), message


def test_a_machine_that_the_catalog_has_no_helm_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    code, message = code_of("", helm_catalog(), tmp_path)
    assert (code, "no checksum" in message) == ("GF854", True)


def test_the_catalog_has_whole_checksums() -> None:
    for system, checksum in helm_catalog().download.sha256.items():
        assert len(bytes.fromhex(checksum)) == 32, system
