"""Endless metrics from another user, who listens on the port of an exporter that is down."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from importlib import resources
from pathlib import Path

import pytest

from gpufleet.host.shell import script_file
from gpufleet.verify.probe import FRAME
from tests.selection import some

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
TOOLS = ("cat", "head", "mktemp", "rm", "sed", "sleep", "sort", "tail", "timeout", "wc", "yes")
LINE = 'DCGM_FI_DEV_GPU_TEMP{gpu=\\"0\\",UUID=\\"GPU-1\\"} 40'
MEMORY = 200_000  # KiB that each process may have
PROGRAMS = ("curl", "wget")


@pytest.fixture(params=some(SHELLS, ["dash"]))
def shell(request: pytest.FixtureRequest) -> list[str]:
    command = SHELLS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed here")
    return [str(shutil.which(command[0])), *command[1:]]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the programs of a host, without curl and wget."""
    for name in TOOLS:
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def add(tools: Path, name: str, answer: str) -> None:
    (tools / name).write_text(f"#!/bin/sh\n{answer}\n")
    (tools / name).chmod(0o755)


def run(shell: list[str], tools: Path, script: str) -> tuple[str, float]:
    """The output of a script, and the seconds that it ran."""
    begin = time.monotonic()
    done = subprocess.run(
        [*shell, "-c", f"ulimit -v {MEMORY}\n{script}"],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.stdout + done.stderr, time.monotonic() - begin


def checked() -> str:
    """The check's functions, and the section with the metrics."""
    text = resources.files("gpufleet.verify").joinpath("host.sh").read_text()
    functions = text[: text.index("\ndriver_sections\npackage_sections\n")]
    frame = FRAME[FRAME.index("limit()") :]
    return f"mark=@@\n{frame}\n{functions}\nurl=http://x\nsection metrics metrics\n"


def waited() -> str:
    """The number of GPUs that the start of the exporter sees."""
    text = script_file("exporter/exporter_start").read_text()
    prelude = script_file("host/prelude").read_text()
    prelude = "\n".join(line for line in prelude.splitlines() if "PATH" not in line)
    functions = text[text.index("metrics() {") : text.index("for unit; do")]
    return f"{prelude}\nurl=http://x\n{functions}\nseen\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_answer_is_read(shell: list[str], tools: Path, program: str) -> None:
    add(tools, program, f'echo "{LINE}"')
    output, _ = run(shell, tools, checked())
    assert output == "\n@@ begin metrics\nDCGM_FI_DEV_GPU_TEMP GPU-1\n\n@@ end 0\n"
    assert run(shell, tools, waited())[0].strip() == "1"


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_error_is_reported(shell: list[str], tools: Path, program: str) -> None:
    add(tools, program, "echo connection refused >&2; exit 7")
    output, _ = run(shell, tools, checked())
    assert output == "\n@@ begin metrics\nconnection refused\n\n@@ end 7\n"
    assert run(shell, tools, waited())[0].strip() == "0"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("answer", [f'exec yes "{LINE}"', "exec cat /dev/zero | tr '\\0' x"])
def test_an_answer_without_an_end_is_left(
    shell: list[str], tools: Path, program: str, answer: str
) -> None:
    (tools / "tr").symlink_to(str(shutil.which("tr")))
    add(tools, program, answer)
    output, _ = run(shell, tools, checked())
    assert output == "\n@@ begin metrics\nhttp://x sends more than 16 MiB\n\n@@ end 1\n"
    assert run(shell, tools, waited())[0].strip() in ("0", "1")


def test_wget_that_does_not_finish_is_left(tools: Path) -> None:
    add(tools, "wget", "exec sleep 90")
    for script in (waited(), checked()):
        shorter = re.sub(r"\btimeout -k \d+ \d+", "timeout -k 1 2", script)
        assert run([str(shutil.which("sh"))], tools, shorter)[1] < 60
