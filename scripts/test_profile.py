"""Where `make test` spends its time; `python -m scripts.test_profile` prints it for each module.

The longest modules go into testing.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.profiling import TICKS, table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/explanation/testing.md"
BEGIN, END = "<!-- profile -->\n", "<!-- /profile -->\n"
WRITTEN = 3 + 10  # lines of the table on the page: head, rule and sum, then modules


def busy() -> float:
    """Seconds that this machine's processors have worked since its start, together."""
    fields = [int(text) for text in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    user, nice, system, _, _, irq, softirq, *_ = fields
    return (user + nice + system + irq + softirq) / TICKS


def main() -> None:
    with TemporaryDirectory() as folder:
        began, cpu = time.monotonic(), busy()
        words = ["scripts/test.sh", "fast", "-p", "tests.profiling", f"--profile-to={folder}"]
        status = subprocess.run(words, cwd=ROOT, check=False).returncode
        seconds, used = time.monotonic() - began, busy() - cpu
        found = table(Path(folder))
    whole = f"{seconds:.0f} s, in which the machine worked {used:.0f} CPU seconds"
    print(f"{whole}\n{found}")
    if status:
        sys.exit(status)  # a red run takes another time: the page stays as it is
    line = f"{date.today()}, {os.cpu_count()} CPUs: {whole}.\n\n"
    longest = "".join(found.splitlines(keepends=True)[:WRITTEN])
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{line}{longest}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
