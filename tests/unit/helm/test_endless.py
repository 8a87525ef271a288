"""Servers with endless or very slow responses: gpufleet reports why, and the disk never fills."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core import limits, process
from gpufleet.core.limits import Limit
from gpufleet.helm.operations import charts
from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.operations.charts import chart_archive, read_chart
from gpufleet.helm.operations.program import HelmProgram
from gpufleet.helm.release import ChartSource, HelmVersion, Release
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.packages.operations.download import DownloadFailed, download_url

SMALL = Limit("a test", 1 << 20, 120)  # the size limit ends it; the time allows for a busy machine
SHORT = Limit("a test", 1 << 20, 2)
MOST = 64 << 20  # bytes; a reader without a limit stops here, and fails the test


@contextmanager
def endless() -> Iterator[str]:
    """A server that never finishes, in the way that the path names; its URL."""
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            getattr(self, self.path.rpartition("/")[2].partition(".")[0])()

        def chunked(self) -> None:
            self._head("Transfer-Encoding", "chunked")
            for _ in range(MOST >> 16):
                self.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")

        index = chunked

        def packed(self) -> None:
            data = zlib.compress(bytes(MOST))
            self.send_response(200)
            self.send_header("Content-Encoding", "deflate")
            self._head("Content-Length", str(len(data)), first=False)
            self.wfile.write(data)

        def drip(self) -> None:
            self._head("Connection", "close")
            self._slowly(b"x")

        def heads(self) -> None:
            self.send_response(200)
            self.flush_headers()
            self._slowly(b"X-More: 1\r\n")

        def _slowly(self, piece: bytes) -> None:
            while not stopped.wait(0.2):
                self.wfile.write(piece)
                self.wfile.flush()

        def _head(self, name: str, value: str, first: bool = True) -> None:
            if first:
                self.send_response(200)
            self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, so that the output of the tests stays readable."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Log nothing: the client closed the connection, as expected."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    stopped.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("how", ["chunked", "packed"])
def test_a_large_answer_is_not_taken(how: str) -> None:
    with endless() as url, pytest.raises(DownloadFailed) as caught:
        download_url(f"{url}/{how}", SMALL)
    assert str(caught.value) == "it sends more than 1 MiB, the limit for a test"


@pytest.mark.parametrize("how", ["drip", "heads"])
def test_a_slow_answer_is_not_waited_for(how: str) -> None:
    with endless() as url, pytest.raises(DownloadFailed) as caught:
        download_url(f"{url}/{how}", SHORT)
    assert str(caught.value) == "it was not done after 2 s, the longest wait for a test"


def release(url: str, kind: Any = "repository") -> Release:
    return Release("one", "space", "tiny", "1.0.0", ChartSource(kind, url))


def finding_of(work: Any) -> tuple[str, str]:
    with pytest.raises(ClusterProblem) as caught:
        work()
    (found,) = caught.value.findings
    return found.code, found.message


def test_an_endless_index_is_a_finding_of_its_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "INDEX", SMALL)
    with endless() as url:
        code, said = finding_of(lambda: chart_archive(release(url), None, tmp_path))  # type: ignore[arg-type]
    assert code == "GF841"
    assert f"{url}/index.yaml: it sends more than 1 MiB" in said


def bomb(folder: Path) -> Path:
    """A small archive with one file that exceeds the size limit of a chart."""
    path = folder / "tiny-1.0.0.tgz"
    entry = tarfile.TarInfo("tiny/values.yaml")
    entry.size = MOST
    with gzip.open(path, "wb") as packed:
        packed.write(entry.tobuf())
        for _ in range(MOST >> 20):
            packed.write(bytes(1 << 20))
        packed.write(bytes(1024))
    return path


def test_an_archive_that_unpacks_to_too_much_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "UNPACKED_CHART", 1 << 20)
    path = bomb(tmp_path)
    code, said = finding_of(lambda: read_chart(path, release(str(path), "archive")))
    assert code == "GF842"
    assert "it unpacks to more than 1 MiB" in said


def number(value: int) -> bytes:
    """12 bytes of a tar header, as GNU writes numbers that do not fit into 11 octal digits."""
    return b"\x80" + value.to_bytes(11, "big")


def header(size: int, kind: bytes, at: Mapping[int, bytes] | None = None) -> bytes:
    """A header of a tar archive; `at`: other bytes by their place."""
    block = bytearray(tarfile.TarInfo("tiny/templates/x").tobuf(tarfile.GNU_FORMAT))
    block[124:136], block[156:157] = number(size), kind
    for place, content in (at or {}).items():
        block[place : place + len(content)] = content
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pax(kind: bytes, **records: str) -> bytes:
    """An extended header."""
    content = b"".join(
        tarfile.TarInfo._create_pax_generic_header({key: value}, kind, "utf-8")[512:].rstrip(b"\0")
        for key, value in records.items()
    )
    return header(len(content), kind) + content + bytes(-len(content) % 512)


def sparse(name: str, records: Mapping[str, str], data: bytes = b"") -> tuple[str, bytes]:
    return name, pax(b"x", **records) + header(len(data), b"0") + data + bytes(-len(data) % 512)


HUGE = 1 << 40
GNU = {"GNU.sparse.name": "tiny/x", "GNU.sparse.realsize": str(HUGE)}
OLD = {386: number(HUGE), 398: number(0), 483: number(HUGE)}
MAP = b"1\n%d\n0\n" % HUGE + bytes(500)
HOSTILE = dict(
    [
        ("sparse", header(0, b"S", OLD)),
        sparse("sparse 0.0", {"GNU.sparse.size": str(HUGE), "GNU.sparse.offset": str(HUGE),
                              "GNU.sparse.numbytes": "0"}),
        sparse("sparse 0.1", {"GNU.sparse.map": f"{HUGE},0", "GNU.sparse.size": str(HUGE)}),
        sparse("sparse 1.0", {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", **GNU}, MAP),
        ("truncated", header(1 << 60, b"Z")),
        ("negative", header(0, b"Z", {124: b"\xff" * 11 + b"\0"})),
        ("not a number", pax(b"x", **{"GNU.sparse.map": "x"}) + header(0, b"0")),
        ("map without an end", pax(b"x", **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})
         + header(512, b"0")),
        ("chained", pax(b"x", a="b") * 2000),
    ]
)  # fmt: skip
READ = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from gpufleet.helm.operations.charts import read_chart
from gpufleet.helm.release import ChartSource, Release
from gpufleet.kube.operations.access import ClusterProblem
for path in sys.argv[1:]:
    source = Release("one", "space", "tiny", "1.0.0", ChartSource("archive", path))
    try:
        read_chart(Path(path), source)
        print("a chart")
    except ClusterProblem as problem:
        print(problem.findings[0].code, problem.findings[0].message.partition(": ")[2])
"""


def test_a_small_archive_does_not_fill_the_memory(tmp_path: Path) -> None:
    """A process with 1 GiB of memory reports a finding for each archive at once."""
    paths = []
    for name, data in HOSTILE.items():
        paths.append(tmp_path / f"{name}.tgz")
        paths[-1].write_bytes(
            gzip.compress(data + bytes(1024 if name != "map without an end" else 0))
        )
        assert paths[-1].stat().st_size < 1 << 20
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], cwd=Path(__file__).parents[3],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    said = dict(zip(HOSTILE, done.stdout.splitlines(), strict=False))
    assert set(said) == set(HOSTILE), done.stderr
    assert {line[:5] for line in said.values()} == {"GF842"}


def talking(folder: Path, text: str) -> Helm:
    path = folder / "helm"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Helm(HelmProgram(path, HelmVersion(3, 22)), {}, "me")  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [1, 2])
def test_helm_that_talks_without_an_end_is_ended(
    stream: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 1)
    called = talking(tmp_path, f"head -c {MOST + 1} /dev/zero >&{stream}; exec sleep 60")
    result = called.run(["x"], timeout=30)
    assert (result.ok, result.stdout) == (False, "")
    assert result.stderr == "Error: helm was ended: it printed more than 64 MiB"


def test_a_registry_that_sends_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "CHART_LIMIT", SMALL)
    monkeypatch.setattr(process, "GRACE", 1)
    last = 'while [ "$1" != --destination ]; do shift; done'
    called = talking(tmp_path, f'{last}; head -c {MOST} /dev/zero >"$2/x.tgz"; exec sleep 60')
    source = release("oci://registry.example/tiny", "oci")
    code, said = finding_of(lambda: chart_archive(source, called, tmp_path / "cache"))
    assert (code, "it sends more than 1 MiB" in said) == ("GF841", True)
    assert not list((tmp_path / "cache").rglob("*.tgz"))


def test_every_limit_is_one_of_a_sane_machine() -> None:
    found = [value for value in vars(limits).values() if isinstance(value, Limit)]
    assert len(found) == 8
    assert all(limits.MIB <= one.bytes <= 2 << 30 and one.seconds <= 3600 for one in found)
