"""`make mutants N=60 SEED=1`: measure how many random mutants of the product `make test` kills.

Mutants are distributed over the packages of the product by lines. The tests first run once on a
copy with instrumented functions, to find the tests that reach each mutant. Then each mutant is
applied to the copy and its tests run: first the pure ones, then whole files of the others, and
mypy in between, which `make test` runs too.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.mutation.mutate import Mutant, marked, mutants

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("gpufleet", "roles", "deploys")
FAST = ("tests/unit/", "tests/roles/", "tests/monitoring/")  # need no host and no cluster
SLOW = ("tests/hosts/", "tests/cluster/")  # their files run whole
# They kill mutants that never terminate. Pure tests together take ten minutes on a busy machine.
FAST_SECONDS, SLOW_SECONDS = 1200, 1800
TIMED_OUT = (124, 137)
NOT_COLLECTED = 4  # also if a test file cannot be imported
SELECTED = "not extended and not slow and not gpu"
OUTSIDE = (
    "--ignore=tests/hosts/test_wheel.py",  # the product runs from an installed wheel there
    "--ignore=tests/unit/test_test_tools.py",  # this program itself
    "--ignore=tests/unit/catalog/test_catalog_patch.py",  # its own copy lacks mutant_reached
)
REACHED = '''\
"""Records the tests that reach each mutant, also while the files of a test may not grow."""
import os
import resource


def reached(number):
    path = os.path.join(os.environ["GPUFLEET_MUTANTS"], str(number))
    now, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        with open(path, "a") as file:
            file.write(os.environ.get("GPUFLEET_TEST", "") + "\\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (now, most))


def pytest_runtest_logstart(nodeid, location):
    """Names the test for processes that it starts: one may be pytest, with tests of its own."""
    os.environ["GPUFLEET_TEST"] = nodeid
'''


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one mutant: `killer` is the test that failed or mypy's error, or ""."""

    mutant: Mutant
    killer: str
    tests: int
    seconds: float

    def __str__(self) -> str:
        survived = f"SURVIVED {self.tests} tests and files"
        result = f"killed by {self.killer}" if self.killer else survived
        return f"{self.mutant}: {result} ({self.seconds:.0f} s)"


def product_files() -> list[str]:
    words = ["git", "ls-files", *(f"{folder}/*.py" for folder in PRODUCT)]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.splitlines()


def room_of(path: str) -> str:
    """gpufleet/driver of gpufleet/driver/plan.py; roles of roles/driver/install.py."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "gpufleet" and len(parts) > 2 else parts[0]


def choose(files: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """`count` mutants, or all, distributed over rooms by their number of mutable lines."""
    rng = random.Random(seed)
    found: dict[str, list[Mutant]] = defaultdict(list)
    for name in files:
        found[room_of(name)] += mutants(name, (ROOT / name).read_text())
    lines = {room: len({(one.path, one.line) for one in found[room]}) for room in found}
    count = min(count, sum(map(len, found.values())))
    if not count:
        return []
    shares = {room: count * lines[room] / sum(lines.values()) for room in sorted(found)}
    counts = {room: int(share) for room, share in shares.items()}
    by_rest = sorted(shares, key=lambda room: counts[room] - shares[room])
    for room in by_rest[: count - sum(counts.values())]:
        counts[room] += 1
    chosen = [
        one
        for room, number in counts.items()
        for one in rng.sample(found[room], min(number, len(found[room])))
    ]
    others = [one for room in found for one in found[room] if one not in chosen]
    return chosen + rng.sample(others, count - len(chosen))


class Copy:
    """A clone of the project to mutate, with its changes that are not committed. Its tests use
    this project's environment."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        self.reached = folder / "reached"
        self.reached.mkdir()
        self.output = ""  # of the last run of tests
        self.numbers: dict[tuple[str, int], int] = {}  # of the instrumented functions
        words = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(self.root)]
        subprocess.run(words, check=True)
        words = ["git", "ls-files", "-z"]
        listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        (self.root / "mutant_reached.py").write_text(REACHED)
        (self.root / ".git/info/exclude").write_text("mutant_reached.py\n")
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{self.root}{os.pathsep}{self.root / 'sandbox'}",
            "GPUFLEET_MUTANTS": str(self.reached),
            "GOGC": "400",
        }

    def pytest(self, tests: Sequence[str], workers: int, *more: str) -> tuple[int, str]:
        """Exit status, and the first failed test."""
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OUTSIDE, *more]
        if workers > 1:
            words += ["-n", str(workers), "--dist", "loadfile"]
        pure = bool(tests) and all(test.startswith(FAST) for test in tests)
        limit = FAST_SECONDS if pure else SLOW_SECONDS
        words = ["timeout", "--kill-after=30", str(limit), *words, *tests]
        done = subprocess.run(
            words, cwd=self.root, env=self.environment, capture_output=True, text=True
        )
        self.output = done.stdout
        broken = done.returncode == NOT_COLLECTED and "\nERROR tests/" in done.stdout
        if done.returncode not in (0, 1, 2, *TIMED_OUT) and not broken:  # pytest itself failed
            sys.exit(
                f"pytest exited with status {done.returncode}: "
                f"{done.stdout[-1500:]}{done.stderr[-500:]}"
            )
        failed = [
            line.split(" - ")[0].partition(" ")[2]
            for line in done.stdout.splitlines()
            if line.startswith(("FAILED ", "ERROR "))
        ]
        return done.returncode, failed[0] if failed else done.stdout[-1500:] + done.stderr[-500:]

    def wrong_type(self) -> str:
        """mypy's first error in the copy, "" if it finds none; its cache is the copy's."""
        words = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty"]
        done = subprocess.run(
            words, cwd=self.root, env=self.environment, capture_output=True, text=True
        )
        if done.returncode not in (0, 1):
            sys.exit(f"mypy exited with status {done.returncode}: {done.stdout}{done.stderr}")
        errors = [line for line in done.stdout.splitlines() if ": error: " in line]
        return f"mypy: {errors[0] if errors else done.stdout}" if done.returncode else ""

    def mark(self, chosen: Sequence[Mutant]) -> None:
        """Instrument every function with a mutant."""
        for mutant in chosen:
            self.numbers.setdefault((mutant.path, mutant.function), len(self.numbers))
        for path in {mutant.path for mutant in chosen}:
            marks = {line: n for (name, line), n in self.numbers.items() if name == path}
            target = self.root / path
            target.write_text(marked(target.read_text(), marks))

    def restore(self, path: str) -> None:
        shutil.copy2(ROOT / path, self.root / path)

    def tests_of(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Pure tests that reach the mutant, and the files of the others."""
        note = self.reached / str(self.numbers[mutant.path, mutant.function])
        lines = note.read_text().splitlines() if note.exists() else []
        ids = set(lines)
        fast = sorted(one for one in ids if one.startswith(FAST))
        files = {one.split("::")[0] for one in ids if one.startswith(SLOW)}
        return fast, sorted(files)


def judge(copy: Copy, mutant: Mutant) -> Verdict:
    start = time.monotonic()
    fast, files = copy.tests_of(mutant)
    target = copy.root / mutant.path
    target.write_text(mutant.applied((ROOT / mutant.path).read_text()))

    def failed(tests: Sequence[str], workers: int) -> str:
        if not tests:
            return ""
        status, first = copy.pytest(tests, workers, "-x", "-m", SELECTED)
        return (first or f"exit status {status}") if status else ""

    try:
        killer = failed(fast, 2 if len(fast) > 60 else 1) or copy.wrong_type() or failed(files, 3)
    finally:
        copy.restore(mutant.path)
    return Verdict(mutant, killer, len(fast) + len(files), time.monotonic() - start)


@click.command()
@click.option("--count", default=60, show_default=True, help="Number of mutants.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random generator.")
@click.option("--only", help="Mutate only files whose path contains this text.", default="")
@click.option("--fast", is_flag=True, help="Run only mypy, and tests without hosts and clusters.")
def main(count: int, seed: int, only: str, fast: bool) -> None:
    """Report surviving mutants; exit status 1 if less than 90 % are killed."""
    files = [name for name in product_files() if only in name]
    if not files:
        raise click.UsageError(f"No file of the product has {only!r} in its path.")
    chosen = choose(files, count, seed)
    if not chosen:
        raise click.UsageError(f"These files have no code to mutate: {', '.join(files)}")
    with TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        print(f"{len(chosen)} mutants; finding the tests that reach them", flush=True)
        copy.mark(chosen)
        noting = ("-p", "mutant_reached")
        status, first = copy.pytest(FAST if fast else [], 4, *noting, "-m", SELECTED)
        if status:
            print(copy.output)
            sys.exit(f"the tests fail without a mutant: {first}")
        for path in {mutant.path for mutant in chosen}:
            copy.restore(path)
        if wrong := copy.wrong_type():
            sys.exit(f"without a mutant: {wrong}")
        # unchanged modules are compiled; the bytecode of a mutant must not stay
        copy.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        verdicts = []
        for mutant in chosen:
            verdicts.append(judge(copy, mutant))
            print(f"{len(verdicts):3} {verdicts[-1]}", flush=True)
    killed = sum(bool(one.killer) for one in verdicts)
    print(f"\n{killed} of {len(verdicts)} killed; survivors:")
    for one in verdicts:
        if not one.killer:
            print(f"  {one}")
    sys.exit(killed < 0.9 * len(verdicts))


if __name__ == "__main__":
    main()
