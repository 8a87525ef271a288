"""The tree on disk: apt and rpm accept its signatures, and reject its faults."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from gpufleet_sandbox.mirror import SERVER
from gpufleet_sandbox.mirror.debs import write as write_deb
from gpufleet_sandbox.mirror.model import File, Package
from gpufleet_sandbox.mirror.rpms import write as write_rpm
from gpufleet_sandbox.mirror.serve import fault_for
from gpufleet_sandbox.mirror.signing import KeyRing

CUDA = "compute/cuda/repos/ubuntu2204/x86_64"


@dataclass(frozen=True)
class Served:
    """The mirror, served on loopback by the script as it runs on a host."""

    url: str
    faults: Path

    def fault(self, **fault: object) -> None:
        self.faults.write_text(json.dumps(fault))

    def status(self, path: str, **headers: str) -> int:
        try:
            with urlopen(Request(f"{self.url}/{path}", headers=headers), timeout=10) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    def body(self, path: str) -> bytes:
        with urlopen(f"{self.url}/{path}", timeout=10) as answer:
            return bytes(answer.read())


@pytest.fixture
def served(tree: Path, tmp_path: Path) -> Iterator[Served]:
    faults = tmp_path / "faults.json"
    command = [sys.executable, str(SERVER), str(tree), "--bind", "127.0.0.1", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--faults", str(faults)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    port = server.stdout.readline().split()[-1]
    yield Served(f"http://127.0.0.1:{port}", faults)
    server.terminate()
    server.wait(10)
    server.stdout.close()


def test_rpms_are_signed_by_the_key_in_the_repository(tree: Path, tmp_path: Path) -> None:
    folder = tree / "compute/cuda/repos/rhel7/x86_64"
    package = sorted(folder.glob("kmod-nvidia-latest-dkms-*.rpm"))[-1]
    database = ["--dbpath", str(tmp_path)]
    subprocess.run(["rpmkeys", *database, "--import", folder / "D42D0685.pub"], check=True)
    good = subprocess.run(["rpmkeys", *database, "-Kv", package], capture_output=True, text=True)
    assert good.returncode == 0, good.stdout
    assert "Signature" in good.stdout
    other = tree / ".alternatives/wrong-signature" / folder.relative_to(tree) / package.name
    bad = subprocess.run(["rpmkeys", *database, "-Kv", other], capture_output=True, text=True)
    assert bad.returncode != 0
    assert "NOKEY" in bad.stdout


def test_the_expired_key_is_a_subkey_of_the_vendors_key(ring: KeyRing) -> None:
    assert ring.keys["expired"].fingerprint == ring.keys["vendor"].fingerprint
    assert ring.keys["expired"].signer != ring.keys["vendor"].signer
    assert len(ring.keys["vendor"].fingerprint) == 40


def test_private_parts_of_the_tree_are_not_served(served: Served) -> None:
    assert served.status(f"{CUDA}/Release") == 200
    assert served.status(f".alternatives/expired-key/{CUDA}/InRelease") == 404
    assert served.status("../../etc/passwd") == 404


def test_a_fault_applies_immediately_and_only_to_its_path(served: Served) -> None:
    right = served.body(f"{CUDA}/InRelease")
    served.fault(mode="wrong-signature", path="ubuntu2204")
    assert served.body(f"{CUDA}/InRelease") != right
    later = "Fri, 01 Jan 2100 00:00:00 GMT"
    assert served.status(f"{CUDA}/InRelease", **{"If-Modified-Since": later}) == 200
    served.fault(mode="404", path="rhel7")
    assert served.body(f"{CUDA}/InRelease") == right
    served.faults.unlink()
    assert served.status("compute/cuda/repos/rhel7/x86_64/repodata/repomd.xml") == 200


def test_an_unknown_mode_is_status_500(served: Served, tmp_path: Path) -> None:
    served.fault(mode="wrong-key")
    assert served.status(f"{CUDA}/Release") == 500
    with pytest.raises(ValueError, match="unknown mode 'wrong-key'"):
        fault_for(served.faults, "/")


def test_slow_has_a_delay_and_the_first_match_applies(tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    faults.write_text('[{"mode": "slow", "path": "/a", "delay": 3}, {"mode": "404"}]')
    assert fault_for(faults, "/a/Release") == ("slow", 3.0)
    assert fault_for(faults, "/b/Release") == ("404", 0.0)
    assert fault_for(tmp_path / "none", "/") == ("ok", 0.0)


@pytest.mark.parametrize(("kind", "write"), [("deb", write_deb), ("rpm", write_rpm)])
def test_the_same_package_has_the_same_bytes(kind, write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    package = Package(
        kind, "small", "1.0-1", "a test", files={"/usr/share/small": File("text\n")},
        links={"/usr/share/link": "small"},
    )  # fmt: skip
    built = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        built.append(write(package, tmp_path / name).read_bytes())
    assert built[0] == built[1]


def test_the_toolkits_repository_has_its_list_and_key(tree: Path) -> None:
    listed = (tree / "libnvidia-container/stable/deb/nvidia-container-toolkit.list").read_text()
    assert listed.startswith("deb http")
    assert "stable/deb/$(ARCH) /" in listed
    assert b"BEGIN PGP PUBLIC KEY BLOCK" in (tree / "libnvidia-container/gpgkey").read_bytes()
