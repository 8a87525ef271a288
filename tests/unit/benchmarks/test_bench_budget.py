"""Budget lines and the page, from measurements on paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.ansible_runs import managed_files, require_converged, variables
from benchmarks.budget import verdicts
from benchmarks.cluster import ConvergedCluster
from benchmarks.converged import Converged
from benchmarks.creation import Creation
from benchmarks.first import First, sources
from benchmarks.many import Many, measure, named
from benchmarks.ours import AFTER, BEFORE, Programs, by_operation, require
from benchmarks.report import Circumstances, fill_parts, page
from benchmarks.simulated import sizes_of
from benchmarks.stats import Summary
from benchmarks.timing import RunFailed
from benchmarks.upgrade import Drained
from benchmarks.upgrade_hosts import Own, StepsWatch, foreign, operations_of
from gpufleet.packages.components import COMPONENTS_PATH


def seconds(*values: float) -> Summary:
    return Summary.of(values)


ROW = Converged(
    hosts=40,
    ours=seconds(2.9),
    status=seconds(6.0),
    doctor=seconds(4.8),
    prolog=seconds(2.0),
    floor=seconds(2.0),
    doctor_floor=seconds(3.0),
    start=seconds(0.3),
    ours_cpu=seconds(2.49),
    floor_cpu=seconds(1.4),
    memory=87.9,
    commands=1,
    ansible=seconds(600.0),
)
ONE = replace(ROW, hosts=1, ours_cpu=seconds(1.0), floor_cpu=seconds(0.4), memory=80.2)


SPENT = (("start", 0.5), ("Install", 9.25), ("Hold", 0.02), ("Record", 0.03))


def missed(*rows: Converged, first: tuple[First, ...] = ()) -> list[str]:
    return [verdict.budget for verdict in verdicts(rows, first) if not verdict.kept]


def test_the_floor_and_a_third_and_the_start_are_allowed() -> None:
    assert missed(ROW) == []
    (budget,) = missed(replace(ROW, ours=seconds(2.91)))
    assert budget == "converged, 40 hosts, within 1.3x the floor + interpreter start"


def test_a_status_of_the_fleet_may_take_three_times_the_floor() -> None:
    assert missed(replace(ROW, status=seconds(6.01))) == ["status, 40 hosts, within 3x the floor"]


MANY = Many(500, 40, seconds(24.0), seconds(8.0), seconds(9.0), seconds(6.0), 190.0)


def test_the_doctor_may_take_half_more_than_its_floor_and_a_prolog_two_seconds() -> None:
    missed_both = missed(replace(ROW, doctor=seconds(4.81), prolog=seconds(2.1)))
    assert missed_both == [
        "doctor, 40 hosts, within 1.5x its floor + interpreter start",
        "prolog, busy machine",
    ]


def test_a_status_of_many_names_may_take_three_times_the_floor() -> None:
    (kept,) = verdicts([], [], many=[MANY])
    assert (kept.budget, kept.kept) == ("status, 500 names, within 3x the floor", True)
    (missed,) = verdicts([], [], many=[replace(MANY, status=seconds(24.1))])
    assert not missed.kept
    about = Circumstances("make bench", "2026-11-21", "2 cores", "Python 3", (0.1, 2.0))
    text = page(about, [], [], [kept], many=[MANY])
    assert "| 500 | 40 | 24.0 (1 run) | 8.00 (1 run) | 3.00 | 9.00 | 6.00 | 190 |" in text


def test_too_few_hosts_are_not_asked_by_too_many_names(tmp_path: Path) -> None:
    lines: list[str] = []
    assert measure("none", [], Programs({}, tmp_path), lines.append, 101) == []
    assert lines == ["101 names need 5 hosts, not 0: left out"]


def test_names_go_round_the_hosts() -> None:
    found = named([("a", {"ssh_hostname": "1"}), ("b", {"ssh_hostname": "2"})], 5)
    assert len({name for name, _ in found}) == 5
    assert [data["ssh_hostname"] for _, data in found] == ["1", "2", "1", "2", "1"]


def test_wall_time_and_memory_have_a_budget_at_40_hosts_only() -> None:
    few = replace(ROW, hosts=10, ours=seconds(7.0), memory=300.0, ansible=None)
    assert [verdict.budget for verdict in verdicts([few], [])] == ["commands per host, hosts: 10"]
    assert missed(replace(ROW, memory=200.5)) == ["memory at 40 hosts"]


def test_a_second_command_is_too_many() -> None:
    assert missed(replace(ROW, commands=2)) == ["commands per host, hosts: 40"]


def test_a_host_more_may_cost_half_more_than_the_floors_and_a_fifth_of_a_mib() -> None:
    assert missed(ONE, ROW) == []
    (budget,) = missed(ONE, replace(ROW, ours_cpu=seconds(2.51)))
    assert budget == "CPU of the controller per host, within 1.5x the floor's"
    assert missed(ONE, replace(ROW, memory=88.1)) == ["memory per host"]


def test_ansible_is_no_budget() -> None:
    assert missed(replace(ROW, hosts=10, ansible=seconds(0.1))) == []


def test_an_operation_lasts_until_the_next_begins() -> None:
    lines = [
        (0.1, "--> Connecting to hosts..."), (0.5, "--> Starting operation: Driver | Install "),
        (0.6, "    [host] Success"), (9.5, "--> Starting operation: Driver | Hold "),
        (9.75, "--> Results:"), (10.0, ""),
    ]  # fmt: skip
    assert by_operation(lines) == [
        (BEFORE, 0.5), ("Driver | Install", 9.0), ("Driver | Hold", 0.25), (AFTER, 0.25),
    ]  # fmt: skip


def test_a_real_driver_takes_no_longer_than_the_package_manager_alone() -> None:
    assert missed(first=(First(1, seconds(10.0), seconds(10.0), SPENT, "Debian's 535"),)) == []
    (budget,) = missed(first=(First(1, seconds(10.1), seconds(10.0), SPENT, "Debian's 535"),))
    assert budget.startswith("first installation, Debian's 535 driver, hosts: 1, within 1.0x")


def test_our_own_part_of_a_first_installation_is_five_seconds_on_one_host() -> None:
    assert missed(first=(First(1, seconds(15.0), seconds(10.0), SPENT),)) == []
    (budget,) = missed(first=(First(1, seconds(15.1), seconds(10.0), SPENT),))
    assert budget.endswith("our own part")
    assert missed(first=(First(10, seconds(50.0), seconds(10.0), SPENT),)) == []


def test_a_converged_cluster_may_take_two_seconds() -> None:
    row = ConvergedCluster("1.36.3", 8, 10.0, seconds(2.0))
    assert [verdict.kept for verdict in verdicts([], [], [row])] == [True]
    assert not verdicts([], [], [replace(row, ours=seconds(2.1))])[0].kept


CREATION = Creation(3, (("Hosts", 60.0), ("Checks", 5.0)), 65.0, 50.0, 6.0, 2.0)


def test_a_cluster_is_created_nearly_as_fast_as_by_a_script() -> None:
    kept = verdicts([], [], [], [CREATION])
    assert [verdict.kept for verdict in kept] == [True, True]
    slow = verdicts([], [], [], [replace(CREATION, typed=49.9, again=6.1)])
    assert [verdict.kept for verdict in slow] == [False, False]


UPGRADE = Drained(
    "1.36.3", 1500, 750, 11_683, plan=10.0, prepare=9.0, evict=467.3, cpu=116.83, memory=500.0,
    looks=90, broken=0, left=0,
)  # fmt: skip


def test_a_simulated_fleet_has_a_gpu_for_each_pod_that_wants_one() -> None:
    assert sizes_of(60, 56) == [(50, True), (10, False)]
    assert sizes_of(60, 24) == [(50, False), (10, False)]
    whole = sizes_of(11_683, 750 * 8)
    assert sum(size for size, _ in whole) == 11_683
    assert sum(size for size, with_gpu in whole if with_gpu) == 3_900


def test_a_whole_fleet_is_planned_and_drained_in_time() -> None:
    def missed_by(**changes: float) -> list[str]:
        found = verdicts([], [], upgrades=[replace(UPGRADE, **changes)])
        return [verdict.budget for verdict in found if not verdict.kept]

    pods = "upgrade, 11683 pods of 750 nodes"
    assert missed_by() == []
    assert missed_by(plan=10.1) == ["upgrade, 1500 nodes planned"]
    assert missed_by(evict=470.0) == [f"{pods}, evictions a second"]
    assert missed_by(evict=481.0) == [f"{pods}, evictions a second", f"{pods}, all of them"]
    assert missed_by(memory=501.0) == [f"{pods}, memory of the controller"]


def test_budgets_of_pods_hold_for_a_small_fleet_too() -> None:
    small = replace(UPGRADE, nodes=20, drained=10, pods=160, plan=99.0, evict=900.0, memory=900.0)
    found = verdicts([], [], upgrades=[replace(small, broken=1, left=2)])
    assert [verdict.kept for verdict in found] == [False, False]
    assert [verdict.kept for verdict in verdicts([], [], upgrades=[small])] == [True, True]


STEPS = (
    [
        (10.0, ""), (11.5, "--> Starting operation: Resolve, try and download the packages "),
        (13.5, "--> Starting operation: Note that the host is changed "), (14.0, "--> Results:"),
    ],
    [
        (20.0, ""), (21.5, "--> Starting operation: NVIDIA driver | Install the driver packages"),
        (29.5, "--> Starting operation: NVIDIA driver | Load the NVIDIA modules "),
        (30.5, "--> Results:"), (31.0, ""),
    ],
)  # fmt: skip


def test_packages_are_no_part_of_ours() -> None:
    found = operations_of(STEPS)
    assert dict(found) == {
        BEFORE: 3.0, "Resolve, try and download the packages": 2.0,
        "Note that the host is changed": 0.5, "NVIDIA driver | Install the driver packages": 8.0,
        "NVIDIA driver | Load the NVIDIA modules": 1.0, AFTER: 0.5,
    }  # fmt: skip
    assert foreign(found) == 10.0


def test_lines_of_a_run_have_the_moment_at_which_they_came(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    watch = StepsWatch(tmp_path)
    watch.look(1.0)
    log.write_text("2026-11-27 20:00:00 a\n2026-11-27 20:00:00,5 b\n2026-11-27 unfin")
    watch.look(2.0)
    with log.open("a") as file:
        file.write("ished c\n")
    watch.look(3.0)
    watch.look(4.0)
    assert watch.seen == {log: [(2.0, ""), (2.0, "a"), (2.0, "b"), (3.0, "c")]}


def test_our_own_part_of_an_upgrade_is_five_seconds() -> None:
    own = Own(seconds(15.0), seconds(5.0), operations_of(STEPS))
    assert verdicts([], [], owns=[own])[0].kept
    assert not verdicts([], [], owns=[replace(own, ours=seconds(5.1))])[0].kept
    about = Circumstances("make bench", "2026-11-21", "2 cores", "Python 3", (0.1, 2.0))
    text = page(about, [], [], [], owns=[own])
    assert "| our own part | 5.00 (1 run) |" in text
    assert "| NVIDIA driver: Install the driver packages | 8.00 |" in text


def test_the_page_of_an_upgrade_needs_no_hosts() -> None:
    about = Circumstances("make bench", "2026-11-21", "2 cores", "Python 3", (0.1, 2.0))
    text = page(about, [], [], verdicts([], [], upgrades=[UPGRADE]), upgrades=[UPGRADE])
    assert "## Converged hosts" not in text
    line = "| 1.36.3 | 1500 | 10.0 | 750 | 11683 | 467 | 25.0 | 10.0 | 500 | 90 | 0 |"
    assert line in text


def test_the_page_has_ratios_and_the_command_that_made_it() -> None:
    few = {"ours": seconds(6.3), "ours_cpu": seconds(3.0), "floor_cpu": seconds(1.0)}
    rows = [replace(ROW, hosts=1, memory=81.0), replace(ROW, memory=120.0, **few)]
    about = Circumstances("make bench", "2026-11-21", "2 cores", "Python 3", (0.1, 2.0))
    first = [First(1, seconds(11.0, 12.0), seconds(10.0), SPENT)]
    cluster = ConvergedCluster("1.36.3", 8, 10.0, seconds(1.1, 1.2, 1.3))
    text = page(about, rows, first, verdicts(rows, first), [cluster], [CREATION])
    assert "Written by `make bench`" in text
    assert "| 40 | 3.15 | 3.00 | 95.2 | 3.00 | 1.00 | 120 |" in text
    assert "grows by 1.00 MiB with each host" in text
    row = "| the sandbox's | 1 | 11.0 / 11.5 / 12.0 (2 runs) | 10.0 (1 run) | 1.15 | 1.50 |"
    assert row in text
    assert "| Install | 9.25 |" in text
    assert "| 1.36.3 | 8 | 1.10 / 1.20 / 1.30 (3 runs) | 10.0 |" in text
    assert "| the other 2 | 0.05 |" in text
    assert "pass  memory at 40 hosts" in text
    rows = "| whole command | 65.0 |\n| of it Hosts, Nodes, GPU stack | 60.0 |\n| script | 50.0 |"
    assert f"| Checks | 5.00 |\n{rows}" in text


def test_a_run_writes_what_it_measured_and_leaves_other_parts() -> None:
    about = Circumstances("make bench", "2026-11-21", "2 cores", "Python 3", (0.1, 2.0))
    assert page(about, [], [], []) == ""
    marks = "# Head\n\n<!-- {0}: begin (make bench) -->\n{1}<!-- {0}: end -->\n\nEnd\n"
    there = fill_parts(marks.format("names", "old\n"), {"names": "new\n", "first": ""})
    assert there == marks.format("names", "new\n")
    more = fill_parts(there, {"first": "1\n"})
    assert more == f"{there}\n<!-- first: begin (make bench) -->\n1\n<!-- first: end -->\n"
    assert fill_parts(more, {"first": "1\n", "names": "new\n"}) == more


RECAP = "h{} : ok=11 changed={} unreachable=0 failed={} skipped=1 rescued=0 ignored=0\n"


def test_ansible_has_to_find_every_host_converged() -> None:
    require_converged(RECAP.format(1, 0, 0) + RECAP.format(2, 0, 0), 2)
    for recap, hosts in [
        (RECAP.format(1, 1, 0), 1),
        (RECAP.format(1, 0, 1), 1),
        (RECAP.format(1, 0, 0), 2),
    ]:
        with pytest.raises(RunFailed, match="something to do"):
            require_converged(recap, hosts)


def test_gpu_node_has_to_do_what_it_is_timed_for() -> None:
    def report(changed: int, failed: bool) -> dict[str, dict[str, dict[str, object]]]:
        return {"hosts": {"a": {"changed": changed, "failed": failed, "errors": []}}}

    require(report(0, False), changes=False)
    require(report(3, False), changes=True)
    for changed, failed, expected in [(1, False, False), (0, False, True), (0, True, False)]:
        with pytest.raises(RunFailed, match="no failure expected"):
            require(report(changed, failed), changes=expected)


def test_apts_own_run_gets_the_sources_that_gpufleet_wrote() -> None:
    role = {"keyring": "/k", "source_file": "/s"}
    known = {"driver": role, "toolkit": role | {"keyring": "/t"}, "files": {"/etc/a": ""}}
    assert sources(known) == ["/k", "/s", "/t", "/s"]
    distro = {"keyring": None, "source_file": None}
    assert sources({"driver": distro, "files": {"/etc/a": "", COMPONENTS_PATH: ""}}) == [
        COMPONENTS_PATH
    ]


RECORD = {
    "driver": {
        "keyring": "/k/driver",
        "packages": {"nvidia-utils-580": "580.1-1", "libnvidia-cfg1-580": "580.1-1"},
        "version": "580.1",
    },
    "toolkit": {
        "keyring": "/k/toolkit",
        "packages": {"nvidia-container-toolkit": "1.20-1"},
        "cdi": {"path": "/run/cdi/nvidia.yaml"},
    },
    "files": {"/etc/b": "", "/etc/a": ""},
}


def test_the_playbook_looks_after_what_gpufleets_record_names() -> None:
    assert managed_files(RECORD)[:4] == ["/k/driver", "/k/toolkit", "/etc/a", "/etc/b"]
    found = variables(RECORD, "5.15.0-1")
    assert found["driver_packages"] == ["libnvidia-cfg1-580=580.1-1", "nvidia-utils-580=580.1-1"]
    assert found["toolkit_packages"] == ["nvidia-container-toolkit=1.20-1"]
    assert "linux-headers-5.15.0-1" in found["prerequisites"]
    assert "nvidia-container-toolkit" in found["held_packages"]
