"""A check of pytest: its host or cluster, its name, how it fails or is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import pytest

from gpufleet.core.findings import Finding, Kind
from gpufleet.core.paths import shipped
from gpufleet.core.visible import one_line
from gpufleet.verify.inventory import Target

SUBJECTS = ("node", "cluster")  # what a check is about: the fixture that it takes
NO_HOST = "(no host)"  # the row of a user's own checks that take none of them


def target_of(item: pytest.Item) -> Target | None:
    """The host or cluster that a check is about; None where it takes neither."""
    parameters = parameters_of(item)
    target = next((parameters[name] for name in SUBJECTS if name in parameters), None)
    return target if isinstance(target, Target) else None


def parameters_of(item: pytest.Item) -> Mapping[str, Any]:
    """Parameter -> value of a check; {} where it takes none."""
    call = getattr(item, "callspec", None)
    return call.params if call else {}


def is_own(item: pytest.Item) -> bool:
    """Whether it is a check of the user's, not one that ships with gpufleet."""
    return shipped("checks") not in item.path.resolve().parents


def check_name(item: pytest.Item) -> str:
    """test_runtime_up[gpu-1-docker] -> runtime_up[docker]; a user's own check has the name of its
    file before it: checks/test_site.py::test_disk -> site.disk"""
    function = getattr(item, "originalname", item.name)
    extra = [str(value) for name, value in parameters_of(item).items() if name not in SUBJECTS]
    name = str(function).removeprefix("test_")
    if is_own(item):
        name = f"{item.path.stem.removeprefix('test_')}.{name}"
    return f"{name}[{'-'.join(extra)}]" if extra else name


def host_of(item: pytest.Item) -> str | None:
    """The row that the result of an item goes to; None for a shipped check without a subject, and
    for one whose subject the inventory does not have."""
    target = target_of(item)
    if target:
        return target.name
    takes_one = parameters_of(item).keys() & set(SUBJECTS)
    return NO_HOST if is_own(item) and not takes_one else None


class CheckFailed(AssertionError):
    """A check that failed; with its finding. Its text is the whole message for the user."""

    def __init__(self, host: str, finding: Finding) -> None:
        self.finding = finding
        super().__init__(f"{finding.code} {one_line(host)}: {finding.sentences}")


class Subject:
    """A host or a cluster of the inventory."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.name, self.data = target.name, target.data

    def fail(self, kind: Kind, expected: str, found: str, **details: str) -> NoReturn:
        raise CheckFailed(self.name, kind(None, expected=expected, found=found, **details))

    def expect(self, ok: bool, kind: Kind, expected: str, found: str, **details: str) -> None:
        """Fail with this kind unless `ok`. `expected` and `found` are text for the user."""
        if not ok:
            self.fail(kind, expected, found, **details)

    def expect_settings(self, kind: Kind) -> None:
        """Fail with this kind where a deploy would stop at the settings."""
        problems = self.target.problems
        self.need(problems is not None, "only `gpufleet verify` reads the settings")
        self.expect(not problems, kind, "valid settings", "; ".join(problems or ()))

    def need(self, ok: object, reason: str) -> None:
        """Skip the check, with the reason, unless it applies."""
        if not ok:
            pytest.skip(reason)
