"""Progress of a run: on terminals of 80 and 120 columns, in a log, for 1, 2 and 500 hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gpufleet.core.progress import Active, RunProgress, heartbeat_line, step_line, terminal_lines

INSTALL = "NVIDIA driver | Install the packages"


def running(*active: Active, hosts: int = 0, **counts: int) -> RunProgress:
    return RunProgress("running", 72.4, hosts or len(active), active, **counts)


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (80, "  gpu-01       65 s  NVIDIA driver: Install the packages"),
        (48, "  gpu-01       65 s  NVIDIA driver: Install the…"),
    ],
)
def test_one_host_and_its_step(width: int, row: str) -> None:
    lines = terminal_lines(running(Active("gpu-01", INSTALL, 65.0)), width, 24)
    assert lines == ["Running on 1 host, 72 s: 1 at work", row]


def test_what_a_step_logged_last_is_behind_its_name() -> None:
    host = Active("gpu-01", INSTALL, 65.0, "CC [M]  nvidia/nv-p2p.o")
    row = "  gpu-01       65 s  NVIDIA driver: Install the packages: CC [M]  nvidia/nv-p2p…"
    assert terminal_lines(running(host), 80, 24)[1] == row


def test_two_hosts_the_longest_step_first_and_the_others_as_numbers() -> None:
    active = (Active("gpu-02", INSTALL, 1.9), Active("cluster-a", "Reboot", 400.0))
    found = running(*active, hosts=46, waiting=1, done=2, unchanged=38, failed=2, blocked=1)
    assert terminal_lines(found, 80, 24) == [
        "Running on 46 hosts, 72 s: 2 at work, 2 failed, 1 blocked, 1 waiting, 2 done, 3…",
        "  cluster-a  6 min 40 s  Reboot",
        "  gpu-02           1 s  NVIDIA driver: Install the packages",
    ]
    assert terminal_lines(found, 120, 24)[0].endswith("38 with no changes")


@pytest.mark.parametrize("height", [24, 50, 3])
def test_500_hosts_fit_into_the_terminal_and_those_left_out_are_counted(height: int) -> None:
    hosts = [Active(f"gpu-{n:03}", INSTALL, float(n)) for n in range(500)]
    lines = terminal_lines(running(*hosts), 80, height)
    assert len(lines) < height
    assert max(map(cell_len, lines)) <= 80
    assert lines[0] == "Running on 500 hosts, 72 s: 500 at work"
    shown = len(lines) - 2
    assert lines[-1] == f"  … and {500 - shown} more hosts at work"
    assert [line.split()[0] for line in lines[1:-1]] == [f"gpu-{499 - n}" for n in range(shown)]


@pytest.mark.parametrize(
    ("stage", "word"), [("connecting", "Connecting to"), ("reading", "Reading")]
)
def test_hosts_that_do_not_answer_are_named_after_a_while(stage: str, word: str) -> None:
    silent = tuple(f"gpu-{n:02}" for n in range(3, 40))
    soon = RunProgress(stage, 2.0, 40, silent=silent)  # type: ignore[arg-type]
    late = RunProgress(stage, 9.0, 40, silent=silent)  # type: ignore[arg-type]
    assert terminal_lines(soon, 80, 24) == [f"{word} 40 hosts, 2 s: 3 done"]
    assert terminal_lines(late, 80, 24)[1:] == ["  waiting for gpu-[03-39]"]
    assert heartbeat_line(late) == f"{word} 40 hosts, 9 s: 3 done; waiting for gpu-[03-39]"
    assert heartbeat_line(RunProgress(stage, 0.0, 1, silent=("a",))) == f"{word} 1 host, 0 s"  # type: ignore[arg-type]


def test_a_heartbeat_is_one_line_about_the_longest_step() -> None:
    active = (Active("gpu-02", "Reboot", 1.0), Active("gpu-01", INSTALL, 65.0, "CC [M]  nv.o"))
    assert heartbeat_line(running(*active, hosts=40, unchanged=38)) == (
        "Running on 40 hosts, 72 s: 2 at work, 38 with no changes; gpu-01 65 s: "
        "NVIDIA driver: Install the packages: CC [M]  nv.o"
    )
    assert (
        heartbeat_line(RunProgress("running", 7300.0, 1))
        == "Running on 1 host, 2 h 1 min: none left"
    )


HOSTILE = st.text(
    st.characters() | st.sampled_from("\x1b\r\n\t\x07\u2028\u202e한🙂"), max_size=60
)  # fmt: skip


@given(HOSTILE, HOSTILE, HOSTILE, st.integers(1, 130), st.floats(0, 1e6))
def test_hostile_text_is_one_visible_line_of_the_width(
    name: str, step: str, logged: str, width: int, seconds: float
) -> None:
    found = running(Active(name, step, seconds, logged))
    lines = terminal_lines(found, width, 24)
    assert len(lines) == 2
    for line in [*lines, heartbeat_line(found), step_line(step, [name], [name], seconds)]:
        assert line.isprintable()
    assert max(map(cell_len, lines)) <= width


def test_the_result_of_a_step() -> None:
    assert step_line(INSTALL, ["gpu-1", "gpu-2"], ["gpu-7"], 65.2) == (
        "NVIDIA driver: Install the packages: done on 2 hosts (gpu-[1-2]), failed on gpu-7, 65 s"
    )
    assert step_line(INSTALL, [], [], 3.0) == ""
