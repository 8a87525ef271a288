"""The cluster tests on one Kubernetes minor after the other: python scripts/test_kubernetes.py

Each minor is built the first time. KUBERNETES="1.30 1.24" takes a subset. The table of results goes
to docs/verification.md where all minors were run, and to standard output in any case.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from gpufleet.sandbox.cluster.versions import versions

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "verification.md"
BEGIN, END = "<!-- test-kubernetes -->\n", "<!-- /test-kubernetes -->\n"
LEFT_OUT = ("test_real_node", "test_building")  # they choose their Kubernetes themselves
HEAD = "| Kubernetes | passed | failed | skipped | seconds |\n|---|---|---|---|---|\n"


@dataclass(frozen=True, slots=True)
class Result:
    """What the tests of one minor came to."""

    release: str
    passed: int
    failed: int
    skipped: int
    seconds: int

    def __str__(self) -> str:
        numbers = (self.passed, self.failed, self.skipped, self.seconds)
        return f"| {self.release} | {' | '.join(map(str, numbers))} |\n"


def test(minor: str) -> Result:
    """Run them, with their output."""
    print(f"\n== Kubernetes {minor}", flush=True)
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = [sys.executable, "-m", "pytest", "-q", "tests/cluster", f"--junitxml={report}"]
        words += [f"--ignore=tests/cluster/{name}.py" for name in LEFT_OUT]
        words += ["--numprocesses", "2", "--dist", "loadfile"]
        environment = {**os.environ, "GPUFLEET_TEST_KUBERNETES": minor}
        subprocess.run(words, cwd=ROOT, env=environment, check=False)
        suite = next(ElementTree.parse(report).iter("testsuite")).attrib
    bad = int(suite["failures"]) + int(suite["errors"])
    skipped = int(suite["skipped"])
    passed = int(suite["tests"]) - bad - skipped
    release = versions().kubernetes.releases[minor]
    return Result(release, passed, bad, skipped, round(float(suite["time"])))


def main() -> None:
    known = [*versions().kubernetes.releases]
    wanted = os.environ.get("KUBERNETES", " ".join(known)).split()
    results = [test(minor) for minor in wanted]
    table = HEAD + "".join(map(str, results))
    print(f"\n{table}")
    if wanted == known:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        said = f"`make test-kubernetes` on {date.today()}:\n\n"
        PAGE.write_text(f"{before}{BEGIN}{said}{table}{END}{rest.partition(END)[2]}")
    sys.exit(any(result.failed for result in results))


if __name__ == "__main__":
    main()
