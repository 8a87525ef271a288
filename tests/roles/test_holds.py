"""hold.sh and release.sh: names that the package manager no longer knows, and failures."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script

# dpkg-query prints what it knows; apt-mark rejects a name that is in no package list.
DPKG_QUERY = """#!/bin/sh
echo 'install ok installed free'
echo 'hold ok installed held:amd64'
echo 'hold ok not-installed gone'
exit 1
"""
APT_MARK = """#!/bin/sh
echo "$*" >>{log}
case " $* " in *' gone '*) echo 'E: Unable to locate package gone' >&2; exit 100 ;; esac
"""
YUM = """#!/bin/sh
echo "$*" >>{log}
echo 'Error: the plugin is switched off' >&2
exit 1
"""
LISTS = "/etc/yum/pluginconf.d/versionlock.list"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The calls of the fake package managers."""
    log = tmp_path / "log"
    log.touch()
    for name, text in {"dpkg-query": DPKG_QUERY, "apt-mark": APT_MARK, "yum": YUM}.items():
        (tmp_path / name).write_text(text.format(log=log))
        (tmp_path / name).chmod(0o755)
    return log


def run(log: Path, name: str, *words: str, lists: Path | None = None) -> tuple[int, str]:
    command = script(name, *words).get_raw_value()
    command = command.replace("\nPATH=", f"\nPATH={log.parent}:", 1)
    command = command.replace(LISTS, str(lists))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_only_what_is_held_is_released(log: Path) -> None:
    assert run(log, "packages/release", "apt", "GF330 message", "free", "held", "gone") == (0, "")
    assert log.read_text() == "unhold held:amd64\n"


def test_a_package_that_stays_held_has_a_code(log: Path) -> None:
    (log.parent / "apt-mark").write_text("#!/bin/sh\necho 'E: no space' >&2\nexit 100\n")
    assert run(log, "packages/release", "apt", "GF330 message", "held") == (
        1,
        "GF330 message\n  | E: no space\n",
    )
    assert run(log, "packages/hold", "apt", "GF327 message", "held") == (
        1,
        "GF327 message\n  | E: no space\n",
    )


def test_a_version_lock_that_remains_is_reported(log: Path) -> None:
    lists = log.parent / "versionlock.list"
    lists.write_text("# bash-1\n0:bash-4.2-1.el7.*\n3:nvidia-driver-550.163-1.el7.*\n")
    status, errors = run(
        log, "packages/release", "yum", "GF330 message", "nvidia-driver", lists=lists
    )
    assert status == 1
    assert errors.startswith("GF330 message\n")
    assert "3:nvidia-driver-550.163-1.el7.*" in errors
    assert "the plugin is switched off" in errors
    assert "bash" not in errors
    lists.write_text("0:bash-4.2-1.el7.*\n")
    assert run(log, "packages/release", "yum", "", "nvidia-driver", lists=lists) == (0, "")


RPM = """#!/bin/sh
echo 550.163-1.el7
"""


def test_old_locks_are_taken_away_only_where_there_are_some(log: Path) -> None:
    """Every call of yum costs seconds."""
    lists = log.parent / "versionlock.list"
    (log.parent / "rpm").write_text(RPM)
    (log.parent / "rpm").chmod(0o755)
    (log.parent / "yum").write_text(YUM.format(log=log).replace("exit 1", "exit 0"))
    add = "-q versionlock add nvidia-driver-550.163-1.el7\n"
    for text in ("", "# nothing yet\n\n"):
        lists.write_text(text)
        assert run(log, "packages/hold", "yum", "", "nvidia-driver", lists=lists) == (0, "")
        assert log.read_text() == add
        log.write_text("")
    lists.write_text("# one\n3:nvidia-driver-550.144-1.el7.*\n")
    assert run(log, "packages/hold", "yum", "", "nvidia-driver", lists=lists) == (0, "")
    assert log.read_text() == "-q versionlock delete *nvidia-driver-[0-9]*\n" + add
