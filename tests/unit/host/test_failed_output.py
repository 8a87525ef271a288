"""The output of a command that failed, as people read it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from pyinfra.connectors.util import OutputLine

from gpufleet.core.causes import find_cause, find_reason_line
from gpufleet.host.asking import OUTPUT_MARK
from gpufleet.host.failed_output import for_people
from gpufleet.host.shell import script_file


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (
            ["You have mail.", "", OUTPUT_MARK, "no space", OUTPUT_MARK],
            ["You have mail.", "no space"],
        ),
        (["", OUTPUT_MARK, "no space", "", OUTPUT_MARK, "logout"], ["no space", "logout"]),
        ([OUTPUT_MARK, OUTPUT_MARK], []),
        (["no space"], ["no space"]),
        ([], []),
    ],
)
def test_the_frame_of_an_answer_is_left_out(printed: list[str], shown: list[str]) -> None:
    lines = [OutputLine("stdout", line) for line in printed]
    lines.insert(1, OutputLine("stderr", "sh: 1"))
    for_people("gpu-1", lines)
    assert [line.line for line in lines if line.buffer_name == "stdout"] == shown
    assert [line.line for line in lines if line.buffer_name == "stderr"] == ["sh: 1"]


def test_a_long_output_is_soon_short() -> None:
    line = "Get:1 http://mirror.example/ubuntu jammy/main amd64 package"
    for stream in ("stdout", "stderr"):
        lines = [OutputLine(stream, f"{line} {number}") for number in range(50_000)]
        began = time.process_time()
        for_people("gpu-1", lines)
        assert time.process_time() - began < 5, "it took 15 s"
        texts = [line.line for line in lines]
        assert texts[-1].endswith("amd64 package 49999")
        assert len(texts) < 50
        assert texts[0].startswith("(49960 lines left out; the whole output: ")


def test_what_a_script_says_last_is_first() -> None:
    lines = [OutputLine("stderr", f"apt prints {number}") for number in range(50_000)]
    lines.append(OutputLine("stderr", "GF301 gpu-1: no space"))
    for_people("gpu-1", lines)
    assert lines[0].line == "GF301 gpu-1: no space"
    assert lines[-2].line == "  | apt prints 49999"
    log = Path(lines[-1].line.rpartition(" ")[2])
    assert len(log.read_text().splitlines()) == 50_000


APT = [  # as apt 2.4 prints it, to a pipe
    "GF322 gpu-1: apt failed while downloading or changing packages; its output follows.",
    "  Run again: it completes the transaction.",
    *(
        f"  | Get:{number} http://mirror.example/ubuntu jammy/main x.deb [1 kB]"
        for number in range(30)
    ),
    "  | (Reading database ... 5%\r(Reading database ... 100%\r",
    "  | Preparing to unpack .../libnvidia-compute-580.deb ...",
    "  | dpkg: error processing archive libnvidia-compute-580.deb (--unpack):",
    "  |  cannot copy extracted data for './usr/lib/libcuda.so.580' to '/usr/lib/libcuda.so.580."
    "dpkg-new': failed to write (No space left on device)",
    "  | E: Sub-process /usr/bin/dpkg returned an error code (1)",
]


def people(*texts: str) -> list[str]:
    lines = [OutputLine("stderr", text) for text in texts]
    for_people("gpu-1", lines)
    return [line.line for line in lines]


DKMS = [
    "Building module:",
    "/var/lib/dkms/nvidia/580/build/nv.c:12:9: error: too few arguments",
    "Error! Bad return status for module build on kernel: 5.15.0-122-generic (x86_64)",
    "dpkg: error processing package nvidia-dkms-580 (--configure):",
    *(f"dpkg: dependency problems prevent configuration of package-{n}" for n in range(9)),
    "E: Sub-process /usr/bin/dpkg returned an error code (1)",
]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (DKMS, DKMS[1]),
        (DKMS[:1] + DKMS[2:], DKMS[2]),
        (DKMS[3:], DKMS[3]),
        (["E: Unable to locate package x", DKMS[-1]], "E: Unable to locate package x"),
        (DKMS[-1:], DKMS[-1]),
        (["Building initial module for", "Unpacking x (1) ..."], "Building initial module for"),
        ([], ""),
    ],
)
def test_the_line_that_says_why_is_the_nearest_to_the_cause(output: list[str], reason: str) -> None:
    assert find_reason_line(output) == reason


def test_the_line_that_says_why_is_shown_although_it_is_not_among_the_last() -> None:
    shown = people("GF322 gpu-1: apt failed.", "  Run again.", *(f"  | {line}" for line in DKMS))
    assert shown[2] == f"  | {DKMS[1]}"
    assert shown[-2:-1] == [f"  | {DKMS[-1]}"]
    assert len(shown) == 2 + 8 + 1


def test_the_cause_is_first_and_the_log_is_last() -> None:
    first, remedy, *quoted, log = people(*APT)
    space = "No space left on device (/usr/lib/libcuda.so.580.dpkg-new)"
    assert first.startswith(f"GF322 gpu-1: {space}. apt failed")
    assert "df -h" in remedy
    assert len(quoted) == 3, "progress says nothing"
    assert quoted[0].startswith("  | dpkg: error processing archive")
    assert quoted[-1] == "  | E: Sub-process /usr/bin/dpkg returned an error code (1)"
    assert Path(log.rpartition(" ")[2]).read_bytes().count(b"\n") == len(APT) - 2


def test_a_short_output_without_a_known_cause_is_all_there_is() -> None:
    texts = ["GF322 gpu-1: apt failed.", "  Run again.", "  | E: Unmet dependencies."]
    assert people(*texts) == texts


def test_a_step_without_output_has_neither_quote_nor_log(tmp_path: Path) -> None:
    lines = [OutputLine("stderr", "GF301 gpu-1: no space"), OutputLine("stderr", "  Free some.")]
    for_people("gpu-1", lines)
    assert [line.line for line in lines] == ["GF301 gpu-1: no space", "  Free some."]
    assert list(tmp_path.iterdir()) == []


def test_only_the_last_lines_are_shown() -> None:
    shown = people(
        "GF322 gpu-1: apt failed.", "  Run again.", *(f"  | said {n}" for n in range(99))
    )
    assert [line for line in shown if line.startswith("  | ")] == [
        f"  | said {n}" for n in range(91, 99)
    ]


@pytest.mark.parametrize(("state", "said"), [("stopping", 1), ("degraded", 0), ("", 0)])
def test_a_script_that_fails_while_the_host_shuts_down_says_so(state: str, said: int) -> None:
    systemd = f"systemctl() {{ echo {state}; }}\n"
    source = systemd + script_file("host/prelude").read_text() + 'fail "GF1 h: no"'
    done = subprocess.run(["sh", "-c", source], capture_output=True, text=True, check=False)
    lines = [text.removeprefix("  | ") for text in done.stderr.splitlines()]
    found = find_cause(lines)
    assert (done.returncode, found is not None and found.name == "shutdown") == (1, bool(said))
