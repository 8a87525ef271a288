"""A user without a home folder, for example in a container with an arbitrary user id."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.cli import main, upgrade
from gpufleet.core.paths import NoHome, cache_dir, user_folder


@pytest.fixture(autouse=True)
def _without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", unknown)


def test_a_command_says_what_to_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        upgrade, "targets_of", lambda *args: user_folder("XDG_STATE_HOME", ".local/state")
    )
    with pytest.raises(SystemExit) as ended:
        main.main(["upgrade", "inventory.py", "--yes"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "Error: This user has no home folder. Set HOME or XDG_STATE_HOME.\n" in said


def test_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(NoHome, match="Set HOME or XDG_CACHE_HOME"):
        cache_dir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "gpufleet"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_dir() == Path("/home/me/.cache/gpufleet")
