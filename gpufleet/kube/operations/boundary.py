"""The boundary around one cluster: every error inside becomes findings of that cluster, and the
other clusters and hosts of the run continue."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec

from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operation import OperationMeta

import gpufleet
from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_field
from gpufleet.core.stopped import Stopped
from gpufleet.host.boundary import findings_of
from gpufleet.host.operation import Commands, operation
from gpufleet.kube.findings import UNEXPECTED, WRITE_REFUSED
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.run.reporting import RunReport

P = ParamSpec("P")
HOME = Path(gpufleet.__file__).parents[1]


@contextmanager
def cluster_boundary() -> Iterator[None]:
    """Stop only the cluster of this deploy if the block raises anything."""
    try:
        yield
    except PyinfraError:  # pyinfra's own way to end a run
        raise
    except Exception as error:  # noqa: BLE001 the one place where nothing may pass
        RunReport.of(state).block(host, list(cluster_findings(error)))


def cluster_findings(error: Exception, doing: str = "") -> Sequence[Finding]:
    """The findings of an error; for an unexpected one, with its place."""
    if isinstance(error, Stopped | PyinfraError):
        return findings_of(error, doing)
    text = quote_field(str(error))
    return [UNEXPECTED(place=_place(error), error=f"{type(error).__name__}: {text}")]


def _place(error: Exception) -> str:
    """Where it happened: the innermost line of gpufleet."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(HOME / "gpufleet")]
    last = (ours or frames)[-1]
    path = Path(last.filename)
    name = path.relative_to(HOME) if path.is_relative_to(HOME) else path.name
    return f"{name}:{last.lineno} ({last.name})"


def cluster_operation(
    function: Callable[P, Commands],
) -> Callable[Concatenate[str, P], OperationMeta]:
    """Like `operation`, for clusters: an error during execution stops only that cluster; during
    preparation, `cluster_boundary` does that."""
    return operation(function, cluster_findings)


def write(action: str, call: Callable[[], object], *, secret: bool = False) -> FunctionCommand:
    """The command of a write that the API server may reject; the finding then names `action`.

    `secret`: the object is secret, and the server's message may quote it.
    """
    return FunctionCommand(_write, (action, call, secret), {})


def _write(state: State, host: Host, action: str, call: Callable[[], object], secret: bool) -> bool:
    """pyinfra honours the return value only of a function that takes `state` and `host`."""
    try:
        call()
    except ApiError as error:
        reason = error.reason if secret else error
        raise ClusterProblem(WRITE_REFUSED(action=action, reason=reason)) from error
    return True
