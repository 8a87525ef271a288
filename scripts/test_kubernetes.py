"""The cluster tests on one Kubernetes minor after the other: python scripts/test_kubernetes.py

Each minor is built the first time. KUBERNETES="1.30 1.24" takes a subset. The results go into the
table of docs/explanation/verification.md, each in the row of its release; the other rows stay.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from packaging.version import Version

from gpufleet_sandbox.cluster.versions import versions

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/explanation/verification.md"
BEGIN, END = "<!-- test-kubernetes -->\n", "<!-- /test-kubernetes -->\n"
CLUSTER = Path("tests", "cluster")
LEFT_OUT = (  # independent of the server; `make test-all` runs them on 1.36 and 1.18
    "test_chart_sources",
    "test_cluster_life",
    "test_gpu_operator_faults",
    "test_gpu_stack_faults",
    "test_load_jobs",
    "test_real_node",
    "test_release_killed",
    "test_simulated_failures",
)
LONGEST = ("test_scrape", "test_gpu_stack", "test_releases", "test_gpu_operator")  # begun first
HEAD = "| Kubernetes | passed | failed | skipped | seconds | day |\n|---|---|---|---|---|---|\n"


@dataclass(frozen=True, slots=True)
class Result:
    """The results of the tests of one minor."""

    release: str
    passed: int
    failed: int
    skipped: int
    seconds: int

    def __str__(self) -> str:
        cells = (self.release, self.passed, self.failed, self.skipped, self.seconds, date.today())
        return f"| {' | '.join(map(str, cells))} |"


def names() -> list[str]:
    """The modules of tests, those that take longest first."""
    there = (path.stem for path in sorted((ROOT / CLUSTER).glob("test_*.py")))
    return [*LONGEST, *(name for name in there if name not in (*LONGEST, *LEFT_OUT))]


def test(minor: str) -> Result:
    """Run them, with their output."""
    print(f"\n== Kubernetes {minor}", flush=True)
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
        words += [f"{CLUSTER / name}.py" for name in names()]
        words += ["--numprocesses", "3", "--dist", "loadfile", "--no-loadscope-reorder"]
        environment = {**os.environ, "GPUFLEET_TEST_KUBERNETES": minor, "GOGC": "400"}
        subprocess.run(words, cwd=ROOT, env=environment, check=False)
        suite = next(ElementTree.parse(report).iter("testsuite")).attrib
    bad = int(suite["failures"]) + int(suite["errors"])
    skipped = int(suite["skipped"])
    passed = int(suite["tests"]) - bad - skipped
    release = versions().kubernetes.releases[minor]
    return Result(release, passed, bad, skipped, round(float(suite["time"])))


def merged(table: str, results: Sequence[Result]) -> str:
    """The table with a row for each release that was ever tested, oldest release first."""
    rows = {row.split(" | ")[0].strip("| "): row for row in table.splitlines()[2:]}
    rows |= {result.release: str(result) for result in results}
    return HEAD + "".join(f"{rows[name]}\n" for name in sorted(rows, key=Version))


def main() -> None:
    wanted = os.environ.get("KUBERNETES", " ".join(versions().kubernetes.releases)).split()
    results = []
    for minor in wanted:
        results.append(test(minor))
        before, _, rest = PAGE.read_text().partition(BEGIN)
        table, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{merged(table, results)}{END}{after}")
    print(f"\n{HEAD}" + "\n".join(map(str, results)))
    sys.exit(any(result.failed for result in results))


if __name__ == "__main__":
    main()
