"""Damaged sources: each is one line of the output, and the others are read all the same."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from gpufleet.catalog import parse
from gpufleet.catalog.operations import read
from gpufleet.cli import main
from gpufleet.core.limits import Limit
from tests.unit.catalog.live_mirror import COMPRESSED, SOURCES, LiveMirror, served, source_of

pytestmark = pytest.mark.usefixtures("own_folder")

DEB = source_of("toolkit", kind="deb").url
RPM = source_of("toolkit", kind="rpm").url
PRIMARY = RPM.replace("repodata/repomd.xml", COMPRESSED)
INDEX = source_of("https://helm.ngc.nvidia.com/nvidia").url
SCHEDULE = source_of("kubernetes", kind="schedule").url
CONTAINERD = source_of("containerd").url
RELEASES = source_of("drivers", kind="releases").url
KEY = source_of("Kubernetes", kind="key").url
CHART = source_of("node-problem-detector").url
BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>"""
REPOMD = b"<repomd><data type='primary'><location href='%s'/></data></repomd>"
ARMOR = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA"

DAMAGE: dict[str, tuple[str, bytes | None]] = {
    "a list of packages that is gone": (DEB, None),
    "a page instead of a list": (DEB, b"<html><body>Sign in</body></html>"),
    "an empty list": (DEB, b""),
    "bytes that are no text": (DEB, bytes(range(256)) * 64),
    "a repomd.xml that is cut off": (RPM, b"<repomd><data type='primary'>"),
    "a repomd.xml that leads elsewhere": (
        RPM, REPOMD % b"https://evil.example/x.gz",
    ),
    "a repomd.xml that leads upwards": (
        RPM, REPOMD % b"../../../etc/x.gz",
    ),
    "entities that grow": (RPM, BOMB),
    "a primary.xml with another checksum": (PRIMARY, gzip.compress(b"<metadata/>")),
    "an index that is not YAML": (INDEX, b"entries: [\n"),
    "an index that is nested too deep": (INDEX, b"[" * 100_000),
    "an index of another kind": (INDEX, b"- a\n- b\n"),
    "a schedule without releases": (SCHEDULE, b"schedules: 3\n"),
    "a schedule with escapes": (SCHEDULE, b"schedules: [{release: \x1b[31m}]"),
    "JSON that is cut off": (CONTAINERD, b'[{"cycle": "2.3", "eol"'),
    "JSON of another kind": (CONTAINERD, b'{"cycle": {"2.3": 1}}'),
    "JSON that is nested too deep": (RELEASES, b"[" * 100_000),
    "a key that is cut off": (KEY, ARMOR),
    "a key that is none": (KEY, b"no key"),
    "a chart without a version": (CHART, b"name: x\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_source_is_named_and_the_others_are_read(name: str, mirror: LiveMirror) -> None:
    url, data = DAMAGE[name]
    broken = url.replace(COMPRESSED, "repodata/repomd.xml")
    subject = next(each.subject for each in SOURCES if each.url == broken)
    mirror.containerd["2.9"] = mirror.kubernetes["1.38"] = "2028-02-28"
    mirror.write({subject, "kubernetes", "runtimes"})
    if data is None:
        mirror.path(url).unlink()
    else:
        mirror.put(url, data)
    words = ["--json", "--only", subject, "--only", "kubernetes", "--only", "runtimes"]
    with served(mirror.root) as place:
        result = CliRunner().invoke(main, ["catalog", "check", "--mirror", place, *words])
    assert isinstance(result.exception, SystemExit), result.output
    found = json.loads(result.stdout)
    failed = [each["url"] for each in found["sources"] if each["finding"]]
    assert broken in failed
    assert len(failed) == 1 or subject == "keys", failed  # the mirror has no keys
    assert "\x1b" not in result.output
    named = " ".join(each["message"] for each in found["gaps"])
    assert ("1.38" in named or url == SCHEDULE, "2.9" in named or url == CONTAINERD) == (True, True)
    assert result.exit_code == 2


def test_a_list_in_another_compression_is_named(mirror: LiveMirror) -> None:
    mirror.write({"toolkit"})
    data = mirror.path(RPM).read_bytes().replace(b"primary.xml.gz", b"primary.xml.zst")
    mirror.put(RPM, data)
    mirror.put(PRIMARY.replace(".gz", ".zst"), mirror.path(PRIMARY).read_bytes())
    with served(mirror.root) as place:
        words = ["catalog", "check", "--only", "toolkit", "--mirror", place]
        result = CliRunner().invoke(main, words)
    assert "primary.xml.zst is compressed in a way" in " ".join(result.output.split())


def test_odd_entries_are_left_out_and_the_rest_counts() -> None:
    odd = b"Package: a\nVersion: 1;rm -rf\n\nPackage: \x1b[1m\nVersion: 1.2\n\n"
    data = odd + b"Package: b\nVersion: 1:1.2-3\n"
    assert parse.parse_deb_packages(data) == {"b": frozenset({"1.2"})}
    cycles = b'[{"cycle": "1.2", "eol": "soon"}, {"cycle": "x", "eol": "2026-01-01"}, 7]'
    assert parse.parse_cycles(cycles) == {"1.2": None}
    assert parse.parse_driver_releases(b'{"580": {"type": "lts branch"}, "x": 1}') == {580: "lts"}


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_silent_server_is_given_up(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "SOURCE_LIMIT", Limit("a source of the catalog", 1 << 20, 1))
    result = CliRunner().invoke(
        main, ["catalog", "check", "--mirror", silent, "--only", "runtimes"]
    )
    assert (result.exit_code, "GF688" in result.output) == (1, True)
    assert "0 of 1 source read" in result.output


def test_a_source_without_end_is_refused(
    mirror: LiveMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "SOURCE_LIMIT", Limit("a source of the catalog", 1 << 20, 60))
    mirror.put(CONTAINERD, b" " * (3 << 20))
    with served(mirror.root) as place:
        words = ["catalog", "check", "--mirror", place, "--only", "runtimes"]
        result = CliRunner().invoke(main, words)
    assert (result.exit_code, "more than 1 MiB" in " ".join(result.output.split())) == (1, True)


def test_a_list_that_unpacks_to_too_much_is_refused(
    mirror: LiveMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "UNPACKED_LIST", 100)
    mirror.write({"toolkit"})
    with served(mirror.root) as place:
        words = ["catalog", "check", "--mirror", place, "--only", "toolkit"]
        result = CliRunner().invoke(main, words)
    assert (result.exit_code, "unpacks to too much" in result.output) == (1, True)


def test_a_host_without_an_answer_is_named_once(mirror: LiveMirror) -> None:
    with served(mirror.root) as place:
        words = ["catalog", "check", "--mirror", place, "--only", "charts"]
        result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.output.count("GF688")) == (1, 1)
    assert "and 5 other sources of this host" in " ".join(result.output.split())
