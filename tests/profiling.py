"""Measure the time of a test run by module: a pytest plugin, `make test-profile`.

Every process that a test starts inherits an environment variable with the name of its worker;
processes in containers are found by their ancestors. Four times a second, each worker reads the CPU
time of all of its processes and adds the increase to the module that it is running. Time after the
last sample of a process, and processes that end between two samples, are missed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

INTERVAL = 0.25  # seconds
TICKS = os.sysconf("SC_CLK_TCK")
SERVERS = {"etcd", "kube-apiserver", "kube-controller", "kube-scheduler", "kwok", "prometheus"}
PROGRAMS = {"kube-apiserver": "control planes", "helm": "helm", "pyinfra": "pyinfra"}
COUNTED = ("control planes", "hosts", "helm", "pyinfra")
TIMES = ("wall", "tests", "servers", "host processes", "other")


@dataclass(slots=True)
class Usage:
    """The seconds that one module used, and the number of processes that it started, by kind."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    started: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    passed: int = 0

    def add(self, other: dict[str, Any]) -> None:
        for name, value in other["seconds"].items():
            self.seconds[name] += value
        for name, value in other["started"].items():
            self.started[name] += value
        self.passed += other["passed"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as /proc shows it; `cpu` in seconds."""

    pid: int
    parent: int
    born: str
    name: str
    cpu: float


def processes() -> Iterator[Seen]:
    """All processes of this machine."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            head, _, tail = (path / "stat").read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        fields = tail.split()
        cpu = (int(fields[11]) + int(fields[12])) / TICKS
        yield Seen(int(path.name), int(fields[1]), fields[19], head.partition("(")[2], cpu)


def _read(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:  # it has ended
        return b""


class Sampler:
    """Charges a worker's processes to its current module."""

    def __init__(self, worker: str) -> None:
        self.mark = f"PYTEST_XDIST_WORKER={worker}\0".encode()
        self.host = f"-{worker}-".encode()  # in the name of a sandbox host
        self.modules: dict[str, Usage] = defaultdict(Usage)
        self.module = ""
        self.known: dict[tuple[int, str], tuple[bool, float]] = {}  # ours by its mark, CPU so far
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def enter(self, module: str) -> None:
        """From now on everything is this module's."""
        with self.lock:
            self._sample()
            self.module = module

    def end(self) -> None:
        self.over.set()
        self.thread.join()
        self.enter("")

    def _run(self) -> None:
        while not self.over.wait(INTERVAL):
            with self.lock:
                self._sample()

    def _sample(self) -> None:
        found = {one.pid: one for one in processes()}
        ours: dict[int, bool] = {}
        usage = self.modules[self.module]
        for one in found.values():
            identity = (one.pid, one.born)
            new = identity not in self.known
            marked, before = self.known.get(identity, (False, 0.0))
            if new:
                marked = self._is_marked(one)
            self.known[identity] = (marked, one.cpu)
            if one.pid == os.getpid():
                usage.seconds["tests"] += one.cpu - before if not new else 0.0
            elif self._is_ours(one, found, ours):
                self._charge(usage, one, one.cpu - before, new, found)

    def _charge(
        self, usage: Usage, one: Seen, cpu: float, new: bool, found: dict[int, Seen]
    ) -> None:
        in_host = self._in_container(one, found)
        kind = "host processes" if in_host else "servers" if one.name in SERVERS else "other"
        usage.seconds[kind] += cpu
        if new and not in_host and one.name in PROGRAMS:
            usage.started[PROGRAMS[one.name]] += 1
        if new and one.name == "conmon" and b"--exec" not in _read(one.pid, "cmdline"):
            usage.started["hosts"] += 1

    def _is_marked(self, one: Seen) -> bool:
        """podman starts a container's monitor without the variables: its name says whose it is."""
        of_host = one.name == "conmon" and self.host in _read(one.pid, "cmdline")
        return of_host or self.mark in _read(one.pid, "environ")

    def _is_ours(self, one: Seen, found: dict[int, Seen], ours: dict[int, bool]) -> bool:
        if one.pid not in ours:
            marked = self.known.get((one.pid, one.born), (False, 0.0))[0]
            parent = found.get(one.parent)
            ours[one.pid] = marked or (parent is not None and self._is_ours(parent, found, ours))
        return ours[one.pid]

    def _in_container(self, one: Seen, found: dict[int, Seen]) -> bool:
        parent = found.get(one.parent)
        while parent is not None:
            if parent.name == "conmon":
                return True
            parent = found.get(parent.parent)
        return False


class Plugin:
    """Runs a sampler during the tests of one worker and writes its results to a folder."""

    def __init__(self, folder: Path, worker: str) -> None:
        self.folder, self.worker = folder, worker
        self.sampler = Sampler(worker)
        self.began = time.monotonic()

    def pytest_sessionstart(self) -> None:
        self.sampler.thread.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        module = item.nodeid.split("::")[0]
        if module != self.sampler.module:
            self.sampler.enter(module)
        began = time.monotonic()
        result = yield
        self.sampler.modules[module].seconds["wall"] += time.monotonic() - began
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.sampler.modules[report.nodeid.split("::")[0]].passed += 1

    def pytest_sessionfinish(self) -> None:
        self.sampler.end()
        found = {
            module: {"seconds": one.seconds, "started": one.started, "passed": one.passed}
            for module, one in self.sampler.modules.items()
        }
        (self.folder / f"{self.worker}.json").write_text(json.dumps(found))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--profile-to", help="write what each module used to FOLDER/WORKER.json")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--profile-to")
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if folder and worker:
        Path(folder).mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Plugin(Path(folder), worker))


def table(folder: Path) -> str:
    """The parts of all workers as a table, the most expensive modules first, in seconds."""
    total: dict[str, Usage] = defaultdict(Usage)
    for part in sorted(folder.glob("*.json")):
        for module, one in json.loads(part.read_text()).items():
            total[module or "(between modules)"].add(one)
    rows = sorted(total.items(), key=lambda item: -item[1].seconds["wall"])
    whole = Usage()
    for _, one in rows:
        whole.add({"seconds": one.seconds, "started": one.started, "passed": one.passed})
    heads = ["module", "passed", *TIMES, *COUNTED]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, one in [("**all**", whole), *rows]:
        times = [f"{one.seconds[kind]:.0f}" for kind in TIMES]
        counts = [str(one.started[kind]) for kind in COUNTED]
        lines.append("| " + " | ".join([name, str(one.passed), *times, *counts]) + " |")
    return "\n".join(lines) + "\n"
