"""The fake GPU Operator retries on errors of the server, and reports other errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubernetes.client.exceptions import ApiException

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.fake_operator import FakeOperator


class Answers:
    """A server that responds with these errors in turn; the last one repeats."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.requests = 0

    def list_cluster_custom_object(self, *_: str) -> None:
        self.requests += 1
        raise self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeOperator:
    monkeypatch.setattr(Cluster, "api", None)
    return FakeOperator(Cluster("none", "1.36.3", tmp_path, tmp_path))


def test_it_retries_after_temporary_errors(operator: FakeOperator) -> None:
    operator.custom = Answers(*(ApiException(status) for status in (404, 409, 429, 500, 503)))
    with operator:
        assert wait_until(lambda: operator.custom.requests > 5, 120)


@pytest.mark.parametrize("error", [ApiException(422), KeyError("metadata")])
def test_its_own_error_is_raised_even_if_the_test_failed(
    operator: FakeOperator, error: Exception
) -> None:
    operator.custom = Answers(error)

    def a_test() -> None:
        with operator:
            assert operator.work.exception(10) is error
            pytest.fail("no end after 300 s")

    with pytest.raises(type(error)) as caught:
        a_test()
    assert caught.value is error
    assert isinstance(error.__cause__, pytest.fail.Exception)
