"""What an item of pytest is to `gpufleet verify`: a check of one host or cluster, or of neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gpufleet.core.paths import shipped
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
