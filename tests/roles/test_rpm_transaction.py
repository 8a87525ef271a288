"""rpm_transaction.sh: the commands for yum's shell, and that no argument adds one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufleet.host.shell import script_command

FAKE = '#!/bin/sh\necho "words: $*"\ncat\necho called > "$0.called"\n'
PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_+~^=-")
characters = st.characters(blacklist_characters="\0", blacklist_categories=("Cs",))
NASTY = ["dkms\nrun", "dkms remove kernel", "$(touch /tmp/x)", "a;b", "a'b", "a\tb", "*", "a\\"]


@pytest.fixture
def manager(tmp_path: Path) -> Path:
    """A fake yum that prints its input."""
    path = tmp_path / "yum"
    path.write_text(FAKE)
    path.chmod(0o755)
    return path


def run(manager: Path, how: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = script_command(
        "packages/rpm_transaction", "", "", str(manager), how, "message", *words
    ).get_raw_value()
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, encoding="utf-8", check=False
    )


def test_one_transaction_removes_and_installs(manager: Path) -> None:
    done = run(manager, "try", "-kmod-old", "kmod-new=3:550.1-1.el7", "dkms")
    assert done.returncode == 0
    first, *commands = done.stdout.splitlines()
    assert "--assumeno" in first
    assert "-y" not in first.split()
    assert commands == ["remove kmod-old", "install kmod-new-550.1-1.el7 dkms", "run"]


def test_a_try_and_a_fetch_never_answer_yes_to_a_transaction(manager: Path) -> None:
    assert " -y " not in run(manager, "try", "dkms").stdout
    manager.write_text(FAKE + 'case "$*" in *--downloadonly*) ;; *) echo "Error: ran" ;; esac\n')
    assert run(manager, "fetch", "dkms").returncode == 0


def test_a_package_that_is_not_installed_is_reported_with_the_output(
    manager: Path,
) -> None:
    done = run(manager, "run", "gpufleet-no-such=1:2-3")
    assert done.returncode == 1
    assert "message" in done.stderr
    assert "not installed: gpufleet-no-such-2-3" in done.stderr
    assert "install gpufleet-no-such-2-3" in done.stderr


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(word=st.sampled_from(NASTY) | st.text(characters, min_size=1, max_size=20))
def test_a_word_that_is_no_package_name_reaches_no_manager(manager: Path, word: str) -> None:
    called = manager.with_suffix(".called")
    called.unlink(missing_ok=True)
    done = run(manager, "try", word)
    if set(word) <= PLAIN:
        assert called.exists()
    else:
        assert done.returncode == 1
        assert not called.exists()
