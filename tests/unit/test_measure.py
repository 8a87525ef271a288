"""The counts of `make measure` are right."""

from __future__ import annotations

from pathlib import Path

from scripts.measure import count_lines, format_report, sum_by_room


def test_lines_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    (tmp_path / "b.py").write_text("")
    assert count_lines(tmp_path, ["a.py", "b.py"]) == {"a.py": 2, "b.py": 0}


def test_rooms_are_the_packages_of_the_product() -> None:
    lines = {"gpufleet/helm/plan.py": 200, "gpufleet/helm/operations/a.py": 1, "gpufleet/x.py": 9}
    assert sum_by_room({**lines, "roles/node.py": 20}) == {"helm": 201}


def test_the_report_counts_product_and_tests_apart() -> None:
    lines = {"gpufleet/helm/a.py": 4001, "roles/a.py": 5, "tests/unit/a.py": 70, "scripts/a.py": 3}
    text = format_report(lines, 12)
    assert "4006 lines in 2 files" in text
    assert "helm 4001; 1 over 4000" in text
    assert "1 over 300" in text
    assert "70 lines" in text
