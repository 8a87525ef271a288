"""Requests to the API: optional ones, and errors that are reported."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.core.allowance import all_lists
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ApiError
from gpufleet.kube.operations.gather import Ask, ask_all


class Refusing:
    """An API that responds to everything with one status."""

    def __init__(self, status: int) -> None:
        self.status = status

    def get(self, path: str, *more: object, **query: str) -> dict[str, Any]:
        raise ApiError(f"GET {path}", self.status, {"reason": "Any", "message": "why"}, "test")

    list = get


ASKS = {"one": Ask("/one", many=False), "many": Ask("/many")}
OPTIONAL = {name: Ask(ask.path, many=ask.many, optional=True) for name, ask in ASKS.items()}


@pytest.mark.parametrize("status", [404, 503])
def test_optional_requests_may_be_missing_or_unavailable(status: int) -> None:
    assert ask_all(Refusing(status), OPTIONAL, all_lists()) == {"one": {}, "many": []}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asks", "status"), [(OPTIONAL, 500), (OPTIONAL, 403), (ASKS, 404), (ASKS, 503)]
)
def test_every_other_rejection_is_reported(asks: dict[str, Ask], status: int) -> None:
    with pytest.raises(ClusterProblem) as caught:
        ask_all(Refusing(status), asks, all_lists())  # type: ignore[arg-type]
    codes = [found.code for found in caught.value.findings]
    assert codes == (["GF866"] if status == 403 else ["GF869", "GF869"])
