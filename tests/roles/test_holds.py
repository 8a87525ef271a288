"""hold.sh and release.sh: names that the package manager no longer knows, and failures."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

# dpkg-query prints what it knows; apt-mark rejects a name that is in no package list.
DPKG_QUERY = """#!/bin/sh
echo 'install ok installed free'
echo 'hold ok installed held:amd64'
echo 'hold ok installed held:i386'
echo 'hold ok installed plain'
echo 'hold ok not-installed gone'
exit 1
"""
DPKG = """#!/bin/sh
echo amd64
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
    fakes = {"dpkg-query": DPKG_QUERY, "dpkg": DPKG, "apt-mark": APT_MARK, "yum": YUM}
    for name, text in fakes.items():
        (tmp_path / name).write_text(text.format(log=log))
        (tmp_path / name).chmod(0o755)
    return log


def run(log: Path, name: str, *words: str, lists: Path | None = None) -> tuple[int, str]:
    command = script_command(name, *words).get_raw_value()
    command = command.replace("\nPATH=", f"\nPATH={log.parent}:", 1)
    command = command.replace(LISTS, str(lists))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_only_what_is_held_is_released(log: Path) -> None:
    assert run(log, "packages/release", "apt", "GF330 message", "free", "held", "gone") == (0, "")
    assert log.read_text() == "unhold held:amd64 plain\n"
    log.write_text("")
    assert run(log, "packages/release", "apt", "GF330 message", "held:i386") == (0, "")
    assert log.read_text() == "unhold held:amd64 held:i386 plain\n"


def test_a_package_that_stays_held_has_a_code(log: Path) -> None:
    (log.parent / "apt-mark").write_text("#!/bin/sh\necho 'E: no space' >&2\nexit 100\n")
    assert run(log, "packages/release", "apt", "GF330 message", "held") == (
        1,
        "GF330 message\n  | E: no space\n",
    )
    assert run(log, "packages/hold", "apt", "GF330 message", "held") == (
        1,
        "GF330 message\n  | E: no space\n",
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
    assert log.read_text() == "-q versionlock delete 3:nvidia-driver-550.144-1.el7.*\n" + add


OURS = ["3:nvidia-driver-550.144-1.el7.*", "nvidia-driver-3:550.163-1.el8.*"]
THEIRS = [
    "0:mynvidia-driver-550.144-1.el7.*",
    "my-nvidia-driver-0:550.144-1.el8.*",
    "nvidia-driver-550-extra-0:1.0-1.el8.*",
    "0:nvidia-driver-1x-1.0-1.el7.*",
    "nvidia-driver-cuda-3:550.144-1.el8.*",
    "!3:nvidia-driver-570.10-1.el7.*",
    "!nvidia-driver-3:570.10-1.el8.*",
    "# 3:nvidia-driver-570.10-1.el7.*",
]
TOML = """version = "1.0"

[[packages]]
name = "mynvidia-driver"
comment = "name = nvidia-driver"
[[packages.conditions]]
key = "evr"
comparator = "="
value = "3:550.144-1.fc43"

[[packages]]
name = "nvidia-driver" # ours
[[packages.conditions]]
key = "evr"
comparator = "="
value = "3:550.144-1.fc43"
"""
DELETE = """#!/bin/sh
echo "$*" >>{log}
[ "$3" = delete ] || exit 0
sed -i '/^3:nvidia-driver-550/d; /^nvidia-driver-3:550/d' {lists}
"""


@pytest.mark.parametrize("name", ["hold", "release"])
def test_a_lock_of_another_package_with_a_like_name_stays(log: Path, name: str) -> None:
    lists = log.parent / "versionlock.list"
    lists.write_text("\n".join([*THEIRS, *OURS, ""]))
    for program, text in {"rpm": RPM, "yum": DELETE.format(log=log, lists=lists)}.items():
        (log.parent / program).write_text(text)
        (log.parent / program).chmod(0o755)
    assert run(log, f"packages/{name}", "yum", "message", "nvidia-driver", lists=lists) == (0, "")
    assert log.read_text().splitlines()[0] == f"-q versionlock delete {' '.join(OURS)}"
    assert lists.read_text().splitlines() == THEIRS
    log.write_text("")
    assert run(log, "packages/release", "yum", "message", "nvidia-driver", lists=lists) == (0, "")
    assert log.read_text() == ""  # every call of yum costs seconds


def test_a_lock_of_dnf_5_is_deleted_by_its_name(log: Path) -> None:
    lists = log.parent / "versionlock.toml"
    lists.write_text(TOML)
    run(log, "packages/release", "yum", "message", "nvidia-driver", lists=lists)
    assert log.read_text() == "-q versionlock delete nvidia-driver\n"
