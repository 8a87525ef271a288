"""The script of an optional part reports a failure and succeeds, so that the host continues."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.notices import parse_notices
from gpufleet.host.shell import script_command

SYSTEMCTL = """#!/bin/sh
case "$*" in
    'is-active '*) exit 3 ;;
    'restart '*) exit {restart} ;;
    *enable*) exit {enable} ;;
esac
"""
JOURNAL = "#!/bin/sh\nprintf 'Starting\\nno user nvidia-persistenced\\n\\n'\n"


def run(
    folder: Path, name: str, *words: str, restart: int = 0, enable: int = 0
) -> subprocess.CompletedProcess[str]:
    fakes = {
        "systemctl": SYSTEMCTL.format(restart=restart, enable=enable),
        "journalctl": JOURNAL,
        "nvidia-ctk": "#!/bin/sh\necho 'failed to initialize NVML' >&2; exit 1\n",
    }
    for program, text in fakes.items():
        (folder / program).write_text(text)
        (folder / program).chmod(0o755)
    command = (
        script_command(name, *words).get_raw_value().replace("\nPATH=", f"\nPATH={folder}:", 1)
    )
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)


def test_the_persistence_daemon_is_optional(tmp_path: Path) -> None:
    done = run(tmp_path, "driver/services", "GF553 UNIT", "nvidia-persistenced")
    assert done.returncode == 0, done.stderr
    (finding,) = parse_notices(done.stdout.splitlines())
    assert (finding.code, finding.blocks) == ("GF539", False)
    assert "no user nvidia-persistenced" in finding.message
    assert "driver_persistence = False" in finding.remedy


def test_the_fabric_manager_is_not(tmp_path: Path) -> None:
    done = run(tmp_path, "driver/services", "GF553 UNIT", "nvidia-fabricmanager")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("GF553 nvidia-fabricmanager")


@pytest.mark.parametrize(
    ("name", "words", "fails"),
    [
        ("cdi_refresh", ("nvidia-cdi-refresh.path",), {"enable": 1}),
        ("cdi_refresh", ("nvidia-cdi-refresh.path",), {"restart": 1}),
        ("cdi_refresh", ("nvidia-cdi-refresh.path",), {}),
        ("cdi_generate", ("nvidia-ctk", "cdi", "generate"), {}),
    ],
)
def test_a_cdi_spec_is_optional(
    tmp_path: Path, name: str, words: tuple[str, ...], fails: dict[str, int]
) -> None:
    """Docker's --gpus and the runtime nvidia work without one."""
    done = run(tmp_path, f"toolkit/{name}", f"{tmp_path}/cdi/nvidia.yaml", *words, **fails)
    assert (done.returncode, done.stderr) == (0, "")
    (finding,) = parse_notices(done.stdout.splitlines())
    assert "toolkit_cdi = False" in finding.remedy


def test_other_output_is_no_notice() -> None:
    assert not list(parse_notices(["extra failed", "extra failed Key x: y", "Extra failed a b: c"]))
