"""The boundary of a cluster: its objects are foreign, and may have any shape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from gpufleet.core.quoting import quote_field
from gpufleet.kube.findings import ANSWER_UNREADABLE
from gpufleet.kube.operations.access import ClusterProblem

LONGEST = 200  # characters of an error, which may quote an object


class Unreadable(ClusterProblem):
    """An object has a shape that no API server sends."""


P = ParamSpec("P")
R = TypeVar("R")


def readable(method: Callable[P, R]) -> Callable[P, R]:
    """A method of what has an `api`, or a function whose first argument is one, or the access to
    one: what goes wrong with an object of the cluster is Unreadable, and the run goes on."""

    @functools.wraps(method)
    def bounded(*args: P.args, **named: P.kwargs) -> R:
        try:
            return method(*args, **named)
        except ClusterProblem:
            raise
        except Exception as error:
            asked: Any = args[0]
            api = getattr(asked, "api", asked)
            text = quote_field(f"{type(error).__name__}: {error}", LONGEST)
            problem = ANSWER_UNREADABLE(
                request=f"A request ({method.__name__})", context=api.context, reason=text
            )
            raise Unreadable(problem) from error

    return bounded
