"""`gpufleet status`: exit statuses, output and the page, on hosts made of facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main, status
from gpufleet.core.accepted import AcceptedFindings
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import QUIET
from gpufleet.facts.gpu import Board, Listed
from gpufleet.status.models import SeenHost
from gpufleet.verify.inventory import Target
from tests.unit.status.fleets import bare, fleet, healthy, seen, silent

pytestmark = pytest.mark.claim(
    "In `status --drift`, a host that was not judged comes before drift, and wrong usage "
    "is no drift.",
    level=1,
)

Run = Callable[..., Result]
CALM = seen("gpu-01", healthy(), driver_enabled=False)
DRIFTED = seen("gpu-02", bare())
BLOCKED = seen("gpu-03", bare(), driver_brunch="580")
FAULTY = seen("gpu-05", replace(healthy(), taken=("0000:65:00.0",)), driver_enabled=False)
SILENT = silent("gpu-04")
LAB = {"status": "converged", "releases": {}, "plan": {"steps": []}, "findings": []}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(hosts, words…)`: the command, where these hosts would answer."""

    def runs(hosts: Sequence[SeenHost], *words: str) -> Result:
        def read(inventory: str, limit: Sequence[str]) -> tuple[list[SeenHost], list[Target]]:
            return list(hosts), [Target("lab", ("gpu_cluster",), {})]

        monkeypatch.setattr(status, "read_hosts_and_clusters", read)
        monkeypatch.setattr(status, "read_clusters", lambda inventory, names: {"lab": LAB})
        return CliRunner().invoke(main, ["status", "inv.py", *words])

    return runs


@pytest.mark.parametrize(
    ("hosts", "plain", "drift"),
    [
        ([CALM], 0, 0),
        ([CALM, DRIFTED], 0, 2),
        ([CALM, BLOCKED], 0, 1),
        ([CALM, DRIFTED, BLOCKED], 0, 1),
        ([CALM, SILENT], 1, 1),
        ([DRIFTED, SILENT], 1, 1),
        ([], 0, 0),
    ],
)
def test_what_was_not_judged_comes_before_drift(
    run: Run, hosts: list[SeenHost], plain: int, drift: int
) -> None:
    assert run(hosts).exit_code == plain
    assert run(hosts, "--drift").exit_code == drift


@pytest.mark.parametrize("words", [["--nosuch"], ["--group-by", "colour"], ["--json", "--csv"],
                                   ["--html", "/proc/none/page.html"], ["other.py"]])  # fmt: skip
def test_with_drift_wrong_usage_is_not_drift(run: Run, words: list[str]) -> None:
    assert run([CALM], *words).exit_code == ExitStatus.USAGE
    assert run([CALM], "--drift", *words).exit_code == ExitStatus.FAILED


@pytest.mark.parametrize(
    ("hosts", "flags", "status"),
    [
        ([CALM], "gpu-fault,reboot", 0),
        ([CALM, FAULTY], "gpu-fault, reboot", 1),
        ([CALM, FAULTY], "drift", 0),
        ([CALM, DRIFTED], "gpu-fault,drift", 1),
        ([CALM, BLOCKED], "blocked", 1),
    ],
)
def test_flags_decide_the_exit_status(
    run: Run, hosts: list[SeenHost], flags: str, status: int
) -> None:
    assert run(hosts).exit_code == 0
    assert run(hosts, "--fail-on", flags).exit_code == status


def test_an_unknown_flag_is_wrong_usage(run: Run) -> None:
    done = run([CALM], "--fail-on", "gpu-fault,gpu-fualt")
    assert (done.exit_code, done.stdout) == (ExitStatus.USAGE, "")
    assert "'gpu-fualt' is not one of" in done.stderr
    assert "unreachable, " in done.stderr
    assert run([CALM], "--drift", "--fail-on", "none").exit_code == ExitStatus.FAILED


def test_metrics_have_every_flag_of_every_host(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "status.prom"
    for _ in range(2):
        assert run([CALM, FAULTY, SILENT], "--metrics", str(file)).exit_code == 1
    lines = file.read_text().splitlines()
    assert 'gpufleet_status_flag{host="gpu-05",flag="gpu-fault"} 1' in lines
    assert 'gpufleet_status_flag{host="gpu-01",flag="gpu-fault"} 0' in lines
    assert 'gpufleet_status_flag{host="gpu-04",flag="unreachable"} 1' in lines
    assert any(line.startswith('gpufleet_status_gpus{host="gpu-05"') for line in lines)
    assert sum(line.startswith("gpufleet_status_host_info{") for line in lines) == 2
    assert file.stat().st_mode & 0o777 == 0o644, "the collector is another user"
    other = tmp_path / "other.prom"
    other.write_text("# HELP gpufleet_upgrade_hosts x\n")
    done = run([CALM], "--metrics", str(other))
    assert (done.exit_code, other.read_text()) == (2, "# HELP gpufleet_upgrade_hosts x\n")


def test_a_misspelt_drift_is_wrong_usage_as_the_page_says(run: Run) -> None:
    done = run([CALM], "--drfit")
    assert (done.exit_code, done.stdout) == (ExitStatus.USAGE, "")


def test_a_key_that_no_host_has_is_wrong_usage(run: Run) -> None:
    racked = replace(CALM, data={"rack": "r1"})
    assert run([racked], "--group-by", "rack").stdout.splitlines()[1].split()[:2] == ["r1", "1"]
    done = run([racked], "--group-by", "rak")
    assert (done.exit_code, "--group-by rak: no host has this data key" in done.stderr) == (2, True)


def test_json_and_csv_are_all_there_is_on_standard_output(run: Run) -> None:
    found = json.loads(run([CALM, DRIFTED], "--json", "--group-by", "model").stdout)
    assert (list(found["hosts"]), list(found["clusters"])) == (["gpu-01", "gpu-02"], ["lab"])
    assert found["groups"][0]["hosts"] == ["gpu-01", "gpu-02"]
    lines = run([CALM, DRIFTED], "--csv").stdout.splitlines()
    assert [line.split(",")[0] for line in lines] == ["host", "gpu-01", "gpu-02", "lab"]


def test_a_page_is_written_beside_the_output_private_and_again(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    for _ in range(2):
        done = run([CALM], "--html", str(page))
        assert (done.exit_code, "gpu-01" in done.stdout) == (0, True)
        assert page.stat().st_mode & 0o777 == 0o600
        assert "gpu-01" in page.read_text()


def test_an_old_page_stays_until_the_hosts_were_read(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "fleet.html"
    run([CALM], "--html", str(page))
    before = page.read_text()

    def interrupted(*words: object) -> None:
        assert page.read_text() == before
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "read_hosts_and_clusters", interrupted)
    assert CliRunner().invoke(main, ["status", "inv.py", "--html", str(page)]).exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.html"]
    assert page.read_text() == before


def test_another_file_is_not_replaced_and_no_host_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        status, "read_hosts_and_clusters", lambda *words: asked.append("") or ([], [])
    )
    file = tmp_path / "inventory.py"
    file.write_text("gpu_nodes = []\n")
    done = CliRunner().invoke(main, ["status", "inv.py", "--html", str(file)])
    assert (done.exit_code, asked) == (2, [])
    assert "GF001" in done.stderr
    assert "is not a page of `gpufleet status`" in done.stderr
    assert file.read_text() == "gpu_nodes = []\n"


def test_a_page_that_is_lost_at_the_end_is_a_failure(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    monkeypatch.setattr(
        status, "as_html", lambda fleet, now: folder.rmdir() or folder.touch() or ""
    )
    done = run([CALM], "--html", str(folder / "fleet.html"))
    assert done.exit_code == 1
    assert "GF002" in done.stderr


def test_groups_are_a_table(run: Run) -> None:
    assert run([CALM, DRIFTED], "--group-by", "os").stdout.split()[:1] == ["OS"]


def test_quietly_nothing_is_printed_where_nothing_calls_for_an_act(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(QUIET, "")  # restored at the end
    old = seen("gpu-05", healthy("570.86.15"), driver_enabled=False)
    codes = {note.finding.code for note in fleet(old).rows[0].notes}
    known = dict.fromkeys(codes, "until 9999-12-31")
    accepted = replace(old, accepted=AcceptedFindings.model_construct(findings=known))
    assert run([old]).stdout
    assert run([old], "--quiet").stdout
    assert run([accepted], "--quiet").output == ""
    assert run([accepted, DRIFTED], "--quiet").stdout
    monkeypatch.delenv(QUIET)
    assert f"{len(codes)} accepted finding" in run([accepted]).stdout
    found = json.loads(run([accepted], "--json").stdout)["hosts"]["gpu-05"]
    assert (found["flags"], {each["code"] for each in found["accepted"]}) == ([], codes)


def divided(name: str, *boards: Board) -> SeenHost:
    devices = sum(len(board.devices) for board in boards)
    facts = replace(healthy(), listed=Listed(len(boards), "", devices, boards))
    return seen(name, facts, driver_enabled=False)


H100 = "NVIDIA H100 80GB HBM3"
SPLIT = [divided(f"gpu-{n}", Board(H100, ("3g.40gb", "1g.10gb")), Board(H100)) for n in (7, 8)]


@pytest.mark.claim("`status --format gres` prints types and numbers as Slurm finds them.", level=1)
def test_lines_for_slurm_have_mig_devices_as_types(run: Run) -> None:
    hostile = divided("gpu-9", Board("X (y)\x1b[2J NodeName=z Gres=gpu:9\n"))
    done = run([*SPLIT, hostile, SILENT], "--format", "gres")
    assert done.stdout.splitlines() == [
        "# gres.conf",
        "NodeName=gpu-7,gpu-8 AutoDetect=nvml",
        "NodeName=gpu-9 AutoDetect=nvml",
        "# slurm.conf",
        "NodeName=gpu-7,gpu-8 Gres=gpu:nvidia_h100_80gb_hbm3_3g:1,"
        "gpu:nvidia_h100_80gb_hbm3_1g:1,gpu:nvidia_h100_80gb_hbm3:1",
        "NodeName=gpu-9 Gres=gpu:x_y2j_nodenamez_gresgpu9:1",
        "# no GPU was read: gpu-04",
    ]


def test_one_format_at_a_time(run: Run) -> None:
    assert run([], "--format", "gres", "--csv").exit_code == ExitStatus.USAGE


def test_the_table_shows_layouts_and_hosts_group_by_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert "MIG 2 layouts" in run(SPLIT).stdout
    same = divided("gpu-6", Board(H100, ("1g.10gb",) * 7))
    found = json.loads(run([*SPLIT, same], "--json", "--group-by", "layout").stdout)
    assert [group["value"] for group in found["groups"]] == ["2 layouts", "1g.10gb:7"]
    assert found["hosts"]["gpu-6"]["layout"] == "1g.10gb:7"
