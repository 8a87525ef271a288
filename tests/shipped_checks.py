"""The checks of tests/post_deploy as functions, for tests that break something and look."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.node import CheckedNode
from gpufleet.verify.runtimes import RUNTIME_NAMES

CHECKS = Path(__file__).parent / "post_deploy"


@cache
def all_checks() -> dict[str, Callable[..., None]]:
    """The checks of hosts that are shipped, by name, without the prefix `test_`."""
    checks: dict[str, Callable[..., None]] = {}
    for path in sorted(CHECKS.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"post_deploy_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if name.startswith("test_") and "node" in inspect.signature(value).parameters:
                checks[name.removeprefix("test_")] = value
    return checks


def outcomes(node: CheckedNode) -> dict[str, str]:
    """Check -> "passed", "skipped: why", or the message of its failure."""
    found = {}
    for check, function in all_checks().items():
        names = RUNTIME_NAMES if "name" in inspect.signature(function).parameters else (None,)
        for name in names:
            label = f"{check}[{name}]" if name else check
            found[label] = _outcome(function, node, *([name] if name else []))
    return found


def failures(node: CheckedNode) -> dict[str, str]:
    """Check -> message, for the checks that fail."""
    return {check: text for check, text in outcomes(node).items() if text.startswith("GF")}


def _outcome(function: Callable[..., None], *arguments: Any) -> str:
    try:
        function(*arguments)
    except CheckFailed as failure:
        return str(failure)
    except pytest.skip.Exception as skip:
        return f"skipped: {skip.msg}"
    return "passed"
