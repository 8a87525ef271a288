"""For all tests: hypothesis without deadlines on shared machines, a count per level at the end."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from gpufleet.core import secrets
from gpufleet.core.live import QUIET
from tests import selection
from tests.scheduling import ByKind

settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")

# docs/explanation/verification.md lists the real components of each level
LEVELS = {
    "unit": "1 pure functions",
    "roles": "2 roles on pyinfra's fake connector",
    "hosts": "3 systemd hosts over SSH",
    "slow": "4 the distribution's real driver packages, real DKMS build",
    "cluster": "5-6 real control planes",
    "monitoring": "6 the real programs of a monitoring stack",
    "browser": "7 a real browser",
    "gpu": "8 a real GPU",
    "internet": "9 images and repositories of the internet",
}


def level_of(item: pytest.Item) -> str:
    if item.get_closest_marker("slow"):
        return LEVELS["slow"]
    return level_of_file(item.path)


@cache
def level_of_file(path: Path) -> str:
    folder = path.relative_to(Path(__file__).parent).parts[0]
    return LEVELS.get(folder, "no level")


def pytest_configure(config: pytest.Config) -> None:
    selection.extended = "not extended" not in config.option.markexpr


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each test's level; real DKMS builds run where `-m` speaks of them, else they say so."""
    slow = pytest.mark.skip(reason="takes minutes: `make test-slow` and `make test-all` run it")
    for item in items:
        item.user_properties.append(("level", level_of(item)))
        if item.get_closest_marker("slow") and "slow" not in config.option.markexpr:
            item.add_marker(slow)


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of tests stay until the end: no garbage collection walks them again


def pytest_runtest_setup() -> None:
    secrets.REGISTER = secrets.SecretRegister()  # a new register for each test


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Tests share a process with threads and servers, which gevent's replacements make hang, and
    its environment, into which commands with --quiet and --no-color write."""
    for variable in (QUIET, "NO_COLOR"):
        os.environ.pop(variable, None)
    patched = sys.modules.get("gevent.monkey")
    if patched is not None and patched.is_module_patched("threading"):
        pytest.exit(f"{item.nodeid} made gevent replace parts of the standard library")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByKind:
    return ByKind(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    skips: list[str] = []
    loops: list[str] = []
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict(getattr(report, "user_properties", ()))
            counts[properties.get("level", "no level"), outcome] += 1
            loops += [properties["replicas"]] if "replicas" in properties else []
            if outcome == "skipped":
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
                skips.append(f"{report.nodeid}: {reason}")
    if loops:
        terminalreporter.section("autoscaling: replicas over time")
    for line in loops:
        terminalreporter.write_line(line)
    terminalreporter.section("tests per level")
    for level in sorted({level for level, _ in counts}):
        words = [f"{number} {what}" for (name, what), number in counts.items() if name == level]
        terminalreporter.write_line(f"level {level}: {', '.join(words)}")
    terminalreporter.write_line(f"{len(skips)} skipped")
    for line in skips:
        terminalreporter.write_line(f"skipped: {line}")
