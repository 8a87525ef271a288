"""purge.sh: the units of removed packages, with fake package and service managers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

# A package is installed while there is a file of its name in `there`; NEEDED cannot be removed.
DPKG_QUERY = """#!/bin/sh
for name; do :; done
case "$*" in
    *Conffiles*) ;;
    -L*) shift; printf '/lib/systemd/system/%s.service\\n' "$@" ;;
    *) [ -e {folder}/there/$name ] && echo 'ii ' ;;
esac
"""
DPKG = """#!/bin/sh
shift
for name; do
    if [ "$name" = needed ]; then echo 'dependency problems prevent removal' >&2; exit 1; fi
done
for name; do rm -f {folder}/there/$name; done
"""
RPM = """#!/bin/sh
for name; do :; done
case $1 in
    -ql) shift; printf '/usr/lib/systemd/system/%s.service\\n' "$@" ;;
    -q) [ -e {folder}/there/$name ] ;;
    -e)
        shift
        for name; do
            if [ "$name" = needed ]; then echo 'needed is needed by mine' >&2; exit 1; fi
        done
        for name; do rm -f {folder}/there/$name; done ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
name=${{2%.service}}
case $1 in
    cat) [ -e {folder}/there/$name ] ;;
    is-enabled) false ;;
    show) [ $4 != gone.service ] || echo NeedDaemonReload=yes ;;
    *) echo "$*" >>{folder}/log ;;
esac
"""
FAKES = {"dpkg-query": DPKG_QUERY, "dpkg": DPKG, "apt-mark": "#!/bin/sh\n", "rpm": RPM,
         "systemctl": SYSTEMCTL}  # fmt: skip


@pytest.mark.parametrize("manager", ["apt", "yum"])
def test_a_unit_of_a_removed_package_is_no_longer_failed(manager: str, tmp_path: Path) -> None:
    """One that failed half installed would count as failed as long as the host runs."""
    (tmp_path / "there").mkdir()
    for name in ("gone", "needed"):
        (tmp_path / "there" / name).touch()
    for name, text in FAKES.items():
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    command = script_command(
        "node/purge", manager, "GF322 message", "gone", "needed"
    ).get_raw_value()
    command = command.replace("\nPATH=", f"\nPATH={tmp_path}:", 1)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "kept needed\n"), done.stderr
    calls = (tmp_path / "log").read_text().splitlines()
    assert calls == ["daemon-reload", "reset-failed gone.service"]
