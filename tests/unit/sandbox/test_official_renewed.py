"""Official binaries whose checksum was corrected, or is another one than that of what is served."""

from __future__ import annotations

import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpufleet_sandbox.cluster import build, cli, official
from gpufleet_sandbox.cluster.cached import believe, is_believed
from gpufleet_sandbox.cluster.official import NotFetched, Patience, fetch
from tests.unit.sandbox.test_official import PATH, PROGRAM, Site, binary
from tests.unit.sandbox.test_official import site as site  # a fixture

NEWER = PROGRAM + b"# corrected\n"


def test_a_corrected_digest_renews_what_is_cached(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [binary(PROGRAM)]
    monkeypatch.setattr(official, "server", lambda name, version: known[-1])
    said: list[str] = []
    for content in (PROGRAM, NEWER):
        site.files[PATH] = content
        known.append(binary(content))
        assert not build.have_server("kube-apiserver", "1.36.3", tmp_path)
        found = build.kubernetes_servers(["kube-apiserver"], "1.36.3", tmp_path, said.append)
        assert found["kube-apiserver"].read_bytes() == content
        assert build.have_server("kube-apiserver", "1.36.3", tmp_path)
    assert any("corrected since" in line for line in said)
    assert len(site.asked) == 2


def test_a_digest_says_nothing_of_what_was_built_or_noted_before(tmp_path: Path) -> None:
    path = tmp_path / "kwok"
    path.write_bytes(b"built")
    believe(path, "")
    assert is_believed(path, "a" * 64)
    note = tmp_path / ".kwok.believed"
    note.write_text("\n".join(note.read_text().split("\n")[:2]) + "\n")  # of an older gpufleet
    assert is_believed(path, "a" * 64)
    believe(path, "", "a" * 64)
    assert is_believed(path, "a" * 64)
    assert not is_believed(path, "b" * 64)


def test_a_wrong_checksum_is_built_instead_and_told_at_the_end(
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
        with cli._told():
            build.kubernetes_servers(["kube-apiserver"], "1.36.3", tmp_path, click.echo)
            click.echo("much more is done")

    done = CliRunner().invoke(up)
    assert done.exit_code == 0, done.output
    last = [line for line in done.output.splitlines() if line][-1]
    assert last.startswith("GF661 warning: The official kube-apiserver was not used: ")
    assert binary(PROGRAM).sha256 in last


def test_one_that_takes_too_long_as_a_whole_is_given_up(site: Site, tmp_path: Path) -> None:
    site.drip = True
    began = time.monotonic()
    with pytest.raises(NotFetched, match="was not there after 1 seconds"):
        fetch(binary(PROGRAM), tmp_path / "there" / "program", Patience(rate=0, seconds=1))
    assert time.monotonic() - began < 20
    assert list(tmp_path.iterdir()) == []
