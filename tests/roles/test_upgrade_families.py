"""An upgrade changes only installed components."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.host.upgrade_settings import Subject
from gpufleet.upgrade.operations.subject_steps import family_of


@pytest.mark.parametrize("subject", ["driver", "toolkit", "reboot"])
@pytest.mark.parametrize("plan", [None, SimpleNamespace(before=None)])
def test_what_is_not_installed_is_not_changed(subject: Subject, plan: object) -> None:
    settings = SimpleNamespace(host=SimpleNamespace(lock_timeout=1))
    node: Any = SimpleNamespace(settings=settings, plan=SimpleNamespace(of=lambda role: plan))
    assert family_of(subject, node) is None
