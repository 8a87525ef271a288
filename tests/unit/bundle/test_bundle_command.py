"""`gpufleet bundle`: damage is named, differences are archived, a server serves the manifest."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

import gpufleet.bundle
from gpufleet.bundle.models import MANIFEST, SBOM, BundlePart
from gpufleet.bundle.operations import create
from gpufleet.bundle.operations.folder import finish_bundle, writing_bundle
from gpufleet.bundle.operations.serve import bundle_server
from gpufleet.bundle.operations.store import FOLDER_VARIABLE, store_file, store_part
from gpufleet.cli import bundle, deploy, main
from gpufleet.verify.inventory import Target
from tests.unit.bundle.bundles import CONTENTS, NO_SKOPEO, REPOSITORIES, file_of, make_bundle

DEB = "a.example.com/repos/x/one.deb"
SCHEMA = json.loads((Path(gpufleet.bundle.__file__).parent / "bundle.schema.json").read_text())
Change = Callable[[Path], object]


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["bundle", *map(str, words)])


def checked(text: str, part: str) -> dict[str, object]:
    """JSON that follows a part of the schema."""
    found: dict[str, object] = json.loads(text)
    jsonschema.validate(found, {**SCHEMA, "$ref": f"#/$defs/{part}"})
    return found


def test_a_whole_bundle_is_verified(tmp_path: Path) -> None:
    made = make_bundle(tmp_path, CONTENTS, NO_SKOPEO)
    done = run("verify", tmp_path)
    assert done.exit_code == 0
    assert made.digest in done.output
    assert "image x:1" in done.output
    found = checked(run("verify", tmp_path, "--json").output, "summary")
    assert found["files"] == 3
    checked((tmp_path / MANIFEST).read_text(), "manifest")


def test_lists_that_expire_are_named_with_the_first_date(tmp_path: Path) -> None:
    """apt refuses them afterwards: those of Debian's security archive after a week."""
    listed = {
        f"deb.example.com/{name}/InRelease": f"Valid-Until: {date}\n".encode()
        for name, date in (
            ("stable", "Sat, 12 Dec 2026 08:00:00 UTC"),
            ("security", "Sat, 05 Dec 2026 08:00:00 UTC"),
        )
    }
    files = tuple(
        replace(file_of(path, data), sort="metadata", name="") for path, data in listed.items()
    )
    with writing_bundle(tmp_path):
        for file in files:
            store_file(tmp_path, file, [listed[file.path]])
        finish_bundle(tmp_path, [BundlePart(files)])
    done = run("verify", tmp_path)
    assert done.exit_code == 0
    shown = " ".join(done.output.split())
    assert "deb.example.com/security/InRelease is valid until 2026-12-05 08:00 UTC" in shown
    assert done.output.count("GF674") == 1


def _bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, tuple[Change, str, str]] = {
    "one bit": (lambda folder: _bit(folder / DEB), "GF668", DEB),
    "a byte more": (lambda folder: (folder / DEB).write_bytes(b"one!"), "GF668", DEB),
    "cut off": (lambda folder: os.truncate(folder / DEB, 1), "GF668", DEB),
    "emptied": (lambda folder: os.truncate(folder / DEB, 0), "GF668", DEB),
    "deleted": (lambda folder: (folder / DEB).unlink(), "GF668", DEB),
    "a folder deleted": (lambda folder: shutil.rmtree(folder / "a.example.com"), "GF668", DEB),
    "a file added": (lambda folder: (folder / "a.example.com/more").touch(), "GF668", "more"),
    "hidden file added": (lambda folder: (folder / ".x").touch(), "GF668", ".x"),
    "renamed": (lambda folder: (folder / DEB).rename(folder / "two.deb"), "GF668", "two.deb"),
    "bill of materials": (lambda folder: _bit(folder / SBOM), "GF668", SBOM),
}


@pytest.mark.claim(
    "`bundle verify` names every file of a bundle that was changed, is missing or was added.",
    level=1,
)
@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_named(tmp_path: Path, kind: str) -> None:
    make_bundle(tmp_path)
    change, code, path = DAMAGES[kind]
    change(tmp_path)
    done = run("verify", tmp_path)
    assert done.exit_code == 1
    assert f"{code} warning" in done.output
    assert path in done.output.replace("\n", "")
    found = checked(run("verify", tmp_path, "--json").output, "summary")
    assert code in json.dumps(found["findings"])


def test_a_link_is_damage_even_to_the_same_content(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    make_bundle(folder)
    (folder / DEB).rename(tmp_path / "one.deb")
    (folder / DEB).symlink_to(tmp_path / "one.deb")
    assert "GF668" in run("verify", folder).output


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_without_a_manifest_there_is_no_bundle(tmp_path: Path, content: bytes | None) -> None:
    make_bundle(tmp_path)
    (tmp_path / MANIFEST).unlink()
    if content is not None:
        (tmp_path / MANIFEST).write_bytes(content)
    for words in (("verify", tmp_path), ("serve", tmp_path), ("diff", tmp_path, tmp_path)):
        done = run(*words)
        assert done.exit_code != 0
        assert "GF671" in done.output


def test_a_difference_turns_the_old_bundle_into_the_new_one(tmp_path: Path) -> None:
    old, new, archive = tmp_path / "old", tmp_path / "new", tmp_path / "delta.tar"
    make_bundle(old, {**CONTENTS, "a.example.com/gone.deb": b"gone"})
    make_bundle(new, {**CONTENTS, "a.example.com/big.deb": b"x" * 5000})
    done = run("diff", old, new, "--output", archive)
    assert done.exit_code == 0
    assert "+ a.example.com/big.deb" in done.output
    assert "- a.example.com/gone.deb" in done.output
    assert DEB not in done.output
    found = checked(run("diff", old, new, "--json").output, "difference")
    assert found["removed"] == ["a.example.com/gone.deb"]
    with tarfile.open(archive) as tar:
        tar.extractall(old, filter="data")
    (old / "a.example.com/gone.deb").unlink()
    assert run("verify", old).exit_code == 0
    assert (old / MANIFEST).read_bytes() == (new / MANIFEST).read_bytes()


def test_a_damaged_file_is_not_archived(tmp_path: Path) -> None:
    old, new, archive = tmp_path / "old", tmp_path / "new", tmp_path / "delta.tar"
    make_bundle(old, {})
    make_bundle(new)
    _bit(new / DEB)
    done = run("diff", old, new, "--output", archive)
    assert done.exit_code == 1
    assert DEB in done.output
    assert not archive.exists()


@contextmanager
def serving(folder: Path) -> Iterator[HTTPConnection]:
    server = bundle_server(folder, make_bundle(folder), "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/{DEB}", 200),
        (f"/{MANIFEST}", 200),
        ("/a.example.com/repos/./x//one.deb", 200),
        ("/a.example.com/repos/x/%6fne.deb", 200),
        ("/", 404),
        ("/a.example.com/", 404),
        ("/mine", 404),
        ("/../secret", 404),
        ("/%2e%2e/secret", 404),
        ("/a.example.com/../mine", 404),
    ],
)
def test_only_files_of_the_manifest_are_served(tmp_path: Path, path: str, status: int) -> None:
    (tmp_path / "secret").write_text("secret")
    with serving(tmp_path / "bundle") as connection:
        (tmp_path / "bundle/mine").write_text("mine")
        connection.request("GET", path)
        assert connection.getresponse().status == status


def test_a_request_reaches_the_terminal_without_control_characters(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as connection:
        connection.connect()
        connection.sock.sendall(b"GET /\x1b[31mred HTTP/1.0\r\n\r\n")
        connection.sock.recv(100)
    shown = capfd.readouterr().err
    assert "red" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_nothing_is_written_over_http(tmp_path: Path, method: str) -> None:
    with serving(tmp_path) as connection:
        connection.request(method, f"/{DEB}", b"new")
        assert connection.getresponse().status >= 400
    assert (tmp_path / DEB).read_bytes() == b"one"


def test_the_server_names_the_keys_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_bundle(tmp_path)

    class Stopped:
        server_port = 8080

        def serve_forever(self) -> None:
            pass

    monkeypatch.setattr(bundle, "bundle_server", lambda *how: Stopped())
    done = run("serve", tmp_path)
    assert '"driver_repo_url": "http://127.0.0.1:8080/a.example.com/repos",' in done.output
    assert "http://127.0.0.1:8080/b.example.com/ubuntu" in done.output


@pytest.fixture
def collecting(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`collecting(status, **hosts)`: the end of the deploy for the hosts of inv.py."""

    def ends(status: int, **hosts: dict[str, object]) -> None:
        targets = [Target(name, ("gpu_nodes",), {}) for name in hosts]
        monkeypatch.setattr(deploy, "load_targets", lambda path: targets)

        def runs(command: list[str], environment: dict[str, str], output: object) -> int:
            folder = Path(environment[FOLDER_VARIABLE])
            files = [file_of(path, data) for path, data in CONTENTS.items()]
            for file in files:
                store_file(folder, file, [CONTENTS[file.path]])
            store_part(folder, "host", BundlePart(tuple(files), REPOSITORIES))
            report = {"hosts": {name: {**HOST, **part} for name, part in hosts.items()}}
            Path(environment["GPUFLEET_REPORT"]).write_text(json.dumps(report))
            return status

        monkeypatch.setattr(create, "run_in_front", runs)
        monkeypatch.setattr(create, "store_wheels", lambda folder: BundlePart())

    return ends


HOST = {"status": "converged", "findings": [], "accepted": [], "plan": {}}
BLOCKER = {"code": "GF331", "severity": "blocker", "message": "no", "remedy": "Correct it."}


def test_a_bundle_is_created(collecting: Callable[..., None], tmp_path: Path) -> None:
    collecting(0, one={})
    done = run("create", "inv.py", "--output", tmp_path / "made")
    assert done.exit_code == 0, done.output
    assert run("verify", tmp_path / "made").exit_code == 0
    bill = json.loads((tmp_path / "made" / SBOM).read_text())
    assert (bill["spdxVersion"], bill["dataLicense"]) == ("SPDX-2.3", "CC0-1.0")
    (package, _) = (each for each in bill["packages"])
    assert package["checksums"]
    assert package["downloadLocation"].startswith("https://")
    assert bill["documentDescribes"] == [each["SPDXID"] for each in bill["packages"]]


def test_a_host_with_a_blocker_leaves_no_manifest(
    collecting: Callable[..., None], tmp_path: Path
) -> None:
    collecting(1, one={}, two={"status": "failed", "findings": [BLOCKER]})
    done = run("create", "inv.py", "--output", tmp_path)
    assert done.exit_code == 1
    assert "GF331 blocker two:" in done.output
    assert not (tmp_path / MANIFEST).exists()
    collecting(0, one={}, two={})
    assert run("create", "inv.py", "--output", tmp_path).exit_code == 0


def test_an_interrupted_run_leaves_no_manifest(
    collecting: Callable[..., None], tmp_path: Path
) -> None:
    collecting(130, one={})
    done = run("create", "inv.py", "--output", tmp_path)
    assert done.exit_code == 130
    assert not (tmp_path / MANIFEST).exists()


def test_a_folder_of_others_is_left_alone(collecting: Callable[..., None], tmp_path: Path) -> None:
    collecting(0, one={})
    (tmp_path / "letters").write_text("x")
    done = run("create", "inv.py", "--output", tmp_path)
    assert done.exit_code == 1
    assert "GF671" in done.output
    assert os.listdir(tmp_path) == ["letters"]
