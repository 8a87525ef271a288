"""A check in pytest: its host or cluster, its name, how it fails or is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import pytest

from gpufleet.core.findings import Finding, Kind
from gpufleet.core.paths import shipped_path
from gpufleet.core.visible import one_line
from gpufleet.verify.inventory import Target

SUBJECTS = ("node", "cluster")  # the fixtures that say which host or cluster a check is about
NO_HOST = "(no host)"  # the row for a user's own checks without such a fixture


def target_of(item: pytest.Item) -> Target | None:
    """The host or cluster that a check is about, or None."""
    parameters = parameters_of(item)
    target = next((parameters[name] for name in SUBJECTS if name in parameters), None)
    return target if isinstance(target, Target) else None


def parameters_of(item: pytest.Item) -> Mapping[str, Any]:
    """A check's parameters: name -> value."""
    call = getattr(item, "callspec", None)
    return call.params if call else {}


def lacks_subject(item: pytest.Item) -> bool:
    """True for a check of hosts if the inventory has no host, or of clusters if it has none."""
    return any(parameters_of(item).get(name, item) is None for name in SUBJECTS)


def is_own(item: pytest.Item) -> bool:
    """True if the check is the user's own and does not ship with gpufleet."""
    return shipped_path("checks") not in item.path.resolve().parents


def check_name(item: pytest.Item) -> str:
    """test_runtime_up[gpu-1-docker] -> runtime_up[docker]. A user's own check begins with its file
    name: checks/test_site.py::test_disk -> site.disk"""
    function = getattr(item, "originalname", item.name)
    extra = [str(value) for name, value in parameters_of(item).items() if name not in SUBJECTS]
    name = str(function).removeprefix("test_")
    if is_own(item):
        name = f"{item.path.stem.removeprefix('test_')}.{name}"
    return f"{name}[{'-'.join(extra)}]" if extra else name


def host_of(item: pytest.Item) -> str | None:
    """The row for an item's result. None for a shipped check without a subject, or with a subject
    that the inventory does not have."""
    target = target_of(item)
    if target:
        return target.name
    takes_one = parameters_of(item).keys() & set(SUBJECTS)
    return NO_HOST if is_own(item) and not takes_one else None


class CheckFailed(AssertionError):
    """A failed check with its finding. Its text is the whole message for the user."""

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

    def expect(
        self, ok: bool, kind: Kind, expected: str, found: str | None, **details: str
    ) -> None:
        """Fail with this kind unless `ok`. `expected` and `found` are text for the user."""
        if not ok:
            self.fail(kind, expected, found or "", **details)

    def expect_settings(self, kind: Kind) -> None:
        """Fail with this kind if a deploy would stop because of the settings."""
        problems = self.target.problems
        self.need(problems is not None, "only `gpufleet verify` reads the settings")
        self.expect(not problems, kind, "valid settings", "; ".join(problems or ()))

    def need(self, ok: object, reason: str) -> None:
        """Skip the check with this reason unless `ok`."""
        if not ok:
            pytest.skip(reason)
