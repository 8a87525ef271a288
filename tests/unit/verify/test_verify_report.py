"""The text and JSON reports."""

from __future__ import annotations

from gpufleet.verify.report import SKIPPED_HEAD, CheckResult, Report


def report() -> Report:
    result = Report({"gpu-1": {}, "gpu-2": {}})
    result.add("gpu-2", "reachable", CheckResult("failed", "GF710", "GF710 gpu-2: …"))
    result.add("gpu-2", "library", CheckResult("skipped", message="not reachable"))
    result.add("gpu-2", "dkms", CheckResult("skipped", message="not reachable"))
    result.add("gpu-1", "reachable", CheckResult("passed", seconds=0.12345))
    return result


def test_json_shape() -> None:
    hosts = report().as_dict()["hosts"]
    assert list(hosts) == ["gpu-1", "gpu-2"]
    counts = {key: hosts["gpu-2"][key] for key in ("passed", "failed", "skipped")}
    assert counts == {"passed": 0, "failed": 1, "skipped": 2}
    assert hosts["gpu-1"]["checks"]["reachable"] == {
        "outcome": "passed",
        "code": None,
        "message": "",
        "seconds": 0.123,
    }


def test_table_has_hosts_failures_and_reasons() -> None:
    lines = report().table().splitlines()
    row = next(line for line in lines if "gpu-2 " in line)
    assert row.split() == ["gpu-2", "0", "1", "2", "reachable", "(GF710)"]
    assert lines[-2:] == [SKIPPED_HEAD, "  2 checks on gpu-2: not reachable"]


def test_names_of_checks_are_whole_at_80_columns() -> None:
    result, host = Report(), "gpu-node-01.example.com"
    names = ["containerd-default-runtime", "fabric-manager", "gpu-count"]
    for name in names:
        result.add(host, name, CheckResult("failed", "GF401"))
    text = result.table(80)
    assert [name for name in (host, *names) if name not in text] == []
    assert max(map(len, text.splitlines())) <= 80


def test_names_and_reasons_in_brackets_stay() -> None:
    result = Report()
    result.add("gpu-1", "module[nvidia]", CheckResult("failed"))
    result.add("gpu-1", "library", CheckResult("skipped", message="no [gpu]"))
    text = result.table()
    assert "module[nvidia] (failed)" in text
    assert text.endswith("no [gpu]\n")


def test_skips_of_a_fleet_are_a_line_for_each_reason() -> None:
    result = Report()
    for number in range(1, 41):
        for check in ("a", "b"):
            result.add(f"gpu-{number:02}", check, CheckResult("skipped", message="no GPU"))
    lines = result.table(80).splitlines()
    assert lines[-1] == "  2 checks on each of 40 hosts (gpu-[01-40]): no GPU"
    assert max(map(len, lines)) <= 80


def test_later_failure_replaces_a_pass_but_not_the_reverse() -> None:
    result = Report()
    result.add("a", "x", CheckResult("passed"))
    result.add("a", "x", CheckResult("error", message="teardown"))
    result.add("a", "x", CheckResult("passed"))
    assert result.hosts["a"]["x"].outcome == "error"


def test_a_failed_teardown_hides_no_failure() -> None:
    result = Report()
    result.add("a", "x", CheckResult("failed", "GF783", "GF783 XID 79", 2.0))
    result.add("a", "x", CheckResult("error", "GF707", "GF707 a Job is left", 3.0))
    both = CheckResult("failed", "GF783", "GF783 XID 79\nGF707 a Job is left", 5.0)
    assert result.hosts["a"]["x"] == both
    result.add("b", "x", CheckResult("error", message="Traceback"))
    result.add("b", "x", CheckResult("error", "GF707", "GF707 a Job is left"))
    assert result.hosts["b"]["x"].code == "GF707"
