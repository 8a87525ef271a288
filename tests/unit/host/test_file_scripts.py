"""The scripts that put files into place and remove them, run by a shell on a folder."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

Run = Callable[..., "subprocess.CompletedProcess[str]"]
# A chmod that logs the mode of its file before it changes it.
NOTING = '#!/bin/sh\nfor last; do :; done\nstat -c %a "$last" >>{log}\nexec /bin/chmod "$@"\n'


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a script under umask 077; programs in `fakes` come before those of the machine."""

    def carry_out(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = script_command(name, *arguments).get_raw_value()
        fakes = tmp_path / "fakes"
        command = command.replace("\nPATH=", f"\nPATH={fakes}:", 1)
        return subprocess.run(
            ["sh", "-c", f"umask 077; {command}"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        )

    for folder in ("fakes", "tmp", "home/incoming", "home/backup"):
        (tmp_path / folder).mkdir(parents=True)
    return carry_out


def stand_in(tmp_path: Path, name: str, text: str) -> None:
    program = tmp_path / "fakes" / name
    program.write_text(text)
    program.chmod(0o755)


def put(run: Run, tmp_path: Path, path: Path, content: str, wanted: int) -> None:
    """Put a file into place, called as operations.files.put calls the script."""
    archive = tmp_path / "home/incoming/1.tar"
    with tarfile.open(archive, "w") as tar:
        entry = tarfile.TarInfo(str(path).lstrip("/"))
        entry.size, entry.mode = len(content), wanted
        entry.uid, entry.gid = os.getuid(), os.getgid()
        tar.addfile(entry, BytesIO(content.encode()))
    done = run("host/put_files", str(archive), str(tmp_path / "home/backup/1"), str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert not archive.exists()


def remove(run: Run, tmp_path: Path, scope: str = "all", *pairs: str) -> list[str]:
    done = run("node/remove_files", str(tmp_path / "home"), scope, *pairs)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def put_runtime_config(run: Run, tmp_path: Path, path: Path, wanted: int) -> None:
    """Put a runtime's file into place as operations.runtimes does, but without a parser."""
    staged = tmp_path / "home/incoming/2"
    staged.write_text("new")
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
    backup = f"{tmp_path}/home/backup/2{path}"
    words = (str(path), str(staged), digest, oct(wanted)[2:], backup, "", "", "", "", "", "", "0")
    done = run("toolkit/runtime_config", *words)
    assert (done.returncode, done.stderr) == (0, "")


class TestModes:
    """The modes of files do not depend on the umask of the login."""

    def test_what_all_may_read_all_can_read(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "etc/apt/keyrings/key.gpg"
        put(run, tmp_path, path, "key", 0o644)
        assert mode(path) == 0o644
        assert {mode(folder) for folder in list(path.parents)[:3]} == {0o755}

    @pytest.mark.parametrize("there", [True, False])
    def test_a_secret_is_one_all_the_time(self, run: Run, tmp_path: Path, there: bool) -> None:
        path, log = tmp_path / "etc/secret", tmp_path / "log"
        stand_in(tmp_path, "chmod", NOTING.format(log=log))
        path.parent.mkdir()
        if there:
            path.write_text("old")
            path.chmod(0o600)
        put(run, tmp_path, path, "password", 0o644 if there else 0o600)
        assert log.read_text().split() == ["600"]
        assert mode(path) == 0o600

    def test_a_secret_is_one_where_all_could_read_the_file(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "etc/repository"
        path.parent.mkdir()
        path.write_text("no secret yet")
        path.chmod(0o644)
        put(run, tmp_path, path, "password", 0o600)
        assert mode(path) == 0o600

    @pytest.mark.parametrize("there", [True, False])
    def test_so_is_a_runtime_s_file(self, run: Run, tmp_path: Path, there: bool) -> None:
        path, log = tmp_path / "etc/new folder/daemon.json", tmp_path / "log"
        stand_in(tmp_path, "chmod", NOTING.format(log=log))
        stand_in(tmp_path, "chown", "#!/bin/sh\n")
        if there:
            path.parent.mkdir(parents=True)
            path.write_text("old")
            path.chmod(0o600)
        put_runtime_config(run, tmp_path, path, 0o600)
        assert (path.read_text(), mode(path)) == ("new", 0o600)
        assert log.read_text().split() == ["600"]
        assert [file.name for file in path.parent.iterdir()] == ["daemon.json"]


class TestSymbolicLinks:
    def test_the_file_behind_it_is_put_back(self, run: Run, tmp_path: Path) -> None:
        link, file = tmp_path / "etc/daemon.list", tmp_path / "srv/real.list"
        for folder in (link.parent, file.parent):
            folder.mkdir()
        file.write_text("theirs")
        link.symlink_to(file)
        put(run, tmp_path, link, "ours", 0o644)
        assert (link.is_symlink(), file.read_text()) == (True, "ours")
        assert remove(run, tmp_path) == []
        assert (link.is_symlink(), file.read_text()) == (True, "theirs")
        assert remove(run, tmp_path) == []

    def test_one_that_led_nowhere_leads_nowhere_again(self, run: Run, tmp_path: Path) -> None:
        link, file = tmp_path / "etc/a.list", tmp_path / "etc/b.list"
        link.parent.mkdir()
        link.symlink_to(file)
        put(run, tmp_path, link, "ours", 0o644)
        assert file.read_text() == "ours"
        assert remove(run, tmp_path) == []
        assert link.is_symlink()
        assert not file.exists()


def test_of_one_role_only_its_own_files_go(run: Run, tmp_path: Path) -> None:
    """The previous files are put back; the files of other roles stay."""
    ours, others = tmp_path / "etc/ours.list", tmp_path / "etc/others.list"
    ours.parent.mkdir()
    ours.write_text("theirs")
    for path in (ours, others):
        put(run, tmp_path, path, "of gpufleet", 0o644)
    assert remove(run, tmp_path, "listed", str(ours), "") == []
    assert (ours.read_text(), others.read_text()) == ("theirs", "of gpufleet")
    assert remove(run, tmp_path) == []
    assert (ours.read_text(), others.exists()) == ("theirs", False)


def test_the_errors_of_a_fetch_are_nowhere_that_others_can_write(run: Run, tmp_path: Path) -> None:
    """A user could guess a name derived from a temporary file's, and plant a link there."""
    log = tmp_path / "log"
    stand_in(tmp_path, "curl", f"#!/bin/sh\nstat -c '%F %a' {tmp_path}/tmp/* >>{log}\nexit 7\n")
    done = run("packages/fetch", "yum", "https://mirror/key", "", "1048576", "30")
    assert done.stdout.startswith("error ")
    assert log.read_text().splitlines() == ["directory 700"]
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("before", ["", "earlier"])
def test_a_refused_configuration_is_not_noted(run: Run, tmp_path: Path, before: str) -> None:
    """The note is written first. If the configuration is refused, the note is restored."""
    note, backup = tmp_path / "home/docker.json", f"{tmp_path}/home/backup/1/docker.json"
    if before:
        note.write_text(before)
    staged = tmp_path / "home/incoming/note"
    staged.write_text("now")
    assert run("toolkit/note_runtime", str(staged), str(note), backup).returncode == 0
    assert note.read_text() == "now"
    for digest, parser in (("moved", "true"), ("", "false")):
        config = tmp_path / "home/incoming/config"
        config.write_text("{}")
        words = [
            str(tmp_path / "etc/d.json"),
            str(config),
            digest,
            "644",
            f"{tmp_path}/home/backup/1/d",
        ]
        done = run("toolkit/runtime_config", *words, "", "", "", str(note), backup, "", "0", parser)
        assert done.returncode == 1
        assert (note.read_text() if note.exists() else "") == before
