"""Official binaries with a corrected checksum, or with a checksum mismatch."""

from __future__ import annotations

import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpufleet_sandbox.cluster import build, cli, official
from gpufleet_sandbox.cluster.cached import is_verified, mark_verified
from gpufleet_sandbox.cluster.official import Limits, NotFetched, fetch
from tests.unit.sandbox.official_setup import PATH, PROGRAM, Site, binary
from tests.unit.sandbox.official_setup import site as site  # a fixture

NEWER = PROGRAM + b"# corrected\n"


def test_a_corrected_digest_replaces_the_cached_program(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [binary(PROGRAM)]
    monkeypatch.setattr(official, "server", lambda name, version: known[-1])
    printed: list[str] = []
    for content in (PROGRAM, NEWER):
        site.files[PATH] = content
        known.append(binary(content))
        assert not build.have_server("kube-apiserver", "1.36.3", tmp_path)
        found = build.kubernetes_servers(["kube-apiserver"], "1.36.3", tmp_path, printed.append)
        assert found["kube-apiserver"].read_bytes() == content
        assert build.have_server("kube-apiserver", "1.36.3", tmp_path)
    assert any("corrected since" in line for line in printed)
    assert len(site.requests) == 2


def test_a_digest_does_not_apply_to_built_programs_and_older_records(tmp_path: Path) -> None:
    path = tmp_path / "kwok"
    path.write_bytes(b"built")
    mark_verified(path, "")
    assert is_verified(path, "a" * 64)
    note = tmp_path / ".kwok.believed"
    note.write_text("\n".join(note.read_text().split("\n")[:2]) + "\n")  # from an older gpufleet
    assert is_verified(path, "a" * 64)
    mark_verified(path, "", "a" * 64)
    assert is_verified(path, "a" * 64)
    assert not is_verified(path, "b" * 64)


def test_a_program_with_a_wrong_checksum_is_built_and_reported_at_the_end(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files[PATH] = b"replaced"
    monkeypatch.setattr(official, "server", lambda name, version: binary(PROGRAM))

    def built(names: list[str], version: str, target: Path, module: object) -> None:
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            (target / name).write_bytes(PROGRAM)
            (target / name).chmod(0o755)

    monkeypatch.setattr(build, "_build_servers", built)
    monkeypatch.setattr(
        build, "_own_module", lambda *_: build.OwnModule(tmp_path, tmp_path, {}, print)
    )

    @click.command()
    def up() -> None:
        with cli._reporting():
            build.kubernetes_servers(["kube-apiserver"], "1.36.3", tmp_path, click.echo)
            click.echo("more progress")

    done = CliRunner().invoke(up)
    assert done.exit_code == 0, done.output
    last = [line for line in done.output.splitlines() if line][-1]
    assert last.startswith("GF661 warning: The official kube-apiserver was not used: ")
    assert binary(PROGRAM).sha256 in last


def test_a_download_that_takes_too_long_is_aborted(site: Site, tmp_path: Path) -> None:
    site.drip = True
    began = time.monotonic()
    with pytest.raises(NotFetched, match="timed out after 1 seconds"):
        fetch(binary(PROGRAM), tmp_path / "there" / "program", Limits(rate=0, seconds=1))
    assert time.monotonic() - began < 20
    assert list(tmp_path.iterdir()) == []
