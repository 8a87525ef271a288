"""The script that imports an archive of images, run by a shell with a fake ctr."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpufleet.host.asking import OUTPUT_MARK
from gpufleet.host.shell import script_command
from gpufleet.kubernetes.operations import images
from gpufleet.kubernetes.operations.images import PresentImages, _append, _parts

CTR = """#!/bin/sh
echo "$*" >>{log}
case "$*" in
    *'images import'*) {imports} ;;
    *'images ls -q'*) echo {pause} ;;
    *'images ls'*) printf 'REF TYPE DIGEST\\n{pause} type sha256:1\\n' ;;
    *'content ls -q'*) echo sha256:1; echo sha256:2 ;;
esac
"""
PAUSE = "registry.k8s.io/pause:3.10.2"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def carry_out(command: Any, imports: str = ":") -> subprocess.CompletedProcess[str]:
        program = tmp_path / "ctr"
        program.write_text(CTR.format(pause=PAUSE, log=tmp_path / "log", imports=imports))
        program.chmod(0o755)
        text = command.get_raw_value().replace("\nPATH=", f"\nPATH={tmp_path}:", 1)
        lines = command.connector_arguments.get("_stdin")
        return subprocess.run(
            ["sh", "-c", text], capture_output=True, text=True, check=False,
            input="\n".join(lines) if lines else None, env={**os.environ},
        )  # fmt: skip

    return carry_out


def test_the_parts_make_the_file(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "UPLOAD_PART_BYTES", 50_000)
    source, target = tmp_path / "images.tar", tmp_path / "sent.tar"
    source.write_bytes(os.urandom(120_001))
    parts = list(_parts(str(source)))
    assert [len(part) for part in parts] == [50_000, 50_000, 20_001]
    for part in parts:
        assert run(_append(part, str(target))).returncode == 0
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("*.part"))


def test_a_part_that_did_not_arrive_whole_is_refused(tmp_path: Path, run: Run) -> None:
    target = tmp_path / "sent.tar"
    command = script_command("kubernetes/append", str(target), hashlib.sha256(b"other").hexdigest())
    command.connector_arguments["_stdin"] = ["eHl6"]
    done = run(command)
    assert done.returncode != 0
    assert "did not arrive whole" in done.stderr
    assert not target.exists()


@pytest.mark.parametrize(
    ("imports", "names", "said"),
    [
        (":", (PAUSE,), ""),
        (":", (PAUSE, "registry.k8s.io/etcd:1"), "registry.k8s.io/etcd:1"),
        ("echo 'unexpected EOF' >&2; exit 1", (PAUSE,), "unexpected EOF"),
    ],
)
def test_an_import_is_checked_and_its_file_goes(
    tmp_path: Path, run: Run, imports: str, names: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "images.tar"
    file.write_bytes(b"x")
    done = run(script_command("kubernetes/import", "GF966 it failed", str(file), *names), imports)
    assert (done.returncode == 0) is not bool(said)
    assert said in done.stderr
    assert ("GF966" in done.stderr) is bool(said)
    assert not file.exists()
    log = (tmp_path / "log").read_text().splitlines()
    assert log[0] == f"-n k8s.io images import {file}"


def test_what_containerd_has_is_read(run: Run) -> None:
    done = run(script_command("kubernetes/images"))
    present = PresentImages().process(["", OUTPUT_MARK, *done.stdout.splitlines(), "", OUTPUT_MARK])
    assert present.images == {PAUSE: "sha256:1"}
    assert present.blobs == {"sha256:1", "sha256:2"}
