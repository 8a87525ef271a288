"""The boundary around one cluster: whatever goes wrong inside becomes findings of that cluster, and
the other clusters and hosts of the run go on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from pyinfra import host, logger, state
from pyinfra.api import FunctionCommand, Host, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operation import OperationMeta

import gpufleet
from gpufleet.core.findings import Finding
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain
from gpufleet.kube.findings import UNEXPECTED
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.run.reporting import RunReport

P = ParamSpec("P")
HOME = Path(gpufleet.__file__).parents[1]
LONGEST = 300  # characters of an error's text, which may quote what a cluster said


@contextmanager
def cluster_boundary() -> Iterator[None]:
    """Stop the cluster of this deploy, and it alone, where the block raises anything."""
    try:
        yield
    except PyinfraError:  # how pyinfra itself ends a run
        raise
    except Exception as error:  # noqa: BLE001 the one place where nothing may pass
        RunReport.of(state).block(host, told(error))


def told(error: Exception) -> list[Finding]:
    """What an error says, as findings; of one that nobody expected, with its place."""
    if isinstance(error, ClusterProblem):
        return list(error.findings)
    text = " ".join(str(error).split())[:LONGEST]
    return [UNEXPECTED(place=_place(error), error=f"{type(error).__name__}: {text}")]


def _place(error: Exception) -> str:
    """Where in gpufleet it happened: the innermost of our own lines."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(HOME / "gpufleet")]
    last = (ours or frames)[-1]
    path = Path(last.filename)
    name = path.relative_to(HOME) if path.is_relative_to(HOME) else path.name
    return f"{name}:{last.lineno} ({last.name})"


def cluster_operation(
    function: Callable[P, Commands],
) -> Callable[Concatenate[str, P], OperationMeta]:
    """As `operation`, for one on a cluster: what it raises while it is carried out stops that
    cluster alone; while it is prepared, `cluster_boundary` does that."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> Commands:
        try:
            for command in function(*args, **kwargs):
                yield _guarded(command) if isinstance(command, FunctionCommand) else command
        except PyinfraError:
            raise
        except Exception as error:
            if not state.is_executing:
                raise
            yield FunctionCommand(_fail, (told(error),), {})

    return operation(guarded)


def _guarded(command: FunctionCommand) -> FunctionCommand:
    inner = command.function

    def call(state: State, host: Host, *args: Any, **kwargs: Any) -> bool:
        try:
            return bool(inner(state, host, *args, **kwargs))
        except PyinfraError:
            raise
        except Exception as error:  # noqa: BLE001 the one place where nothing may pass
            return _fail(state, host, told(error))

    return FunctionCommand(call, command.args, command.kwargs)


def _fail(state: State, host: Host, found: list[Finding]) -> bool:
    """Tell why an operation failed; pyinfra heeds what this returns."""
    part = RunReport.of(state).host(host.name)
    part.findings += [finding for finding in found if finding not in part.findings]
    for finding in found:
        logger.error(explain(host.name, finding))
    return False
