"""pyinfra's decorators with types. An operation is called with its sentence first."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from pyinfra import host, state
from pyinfra.api import FunctionCommand, StringCommand
from pyinfra.api import deploy as pyinfra_deploy
from pyinfra.api import operation as pyinfra_operation
from pyinfra.api.operation import OperationMeta
from pyinfra.context import ctx_state

from gpufleet.core.inventory import CLUSTERS
from gpufleet.host.boundary import Explain, current_step, fail_with, findings_of, watch_command
from gpufleet.host.lock import acquire_lock, as_step, lock_of
from gpufleet.run.pace import mark_independent
from gpufleet.run.reporting import RunReport

P = ParamSpec("P")
Value = TypeVar("Value")
Commands = Generator[str | StringCommand | FunctionCommand, None, None]


@dataclass(slots=True)
class Later(Generic[Value]):
    """A value that one step passes on to later steps, None until that step has run."""

    value: Value | None = None


def host_operation(
    function: Callable[P, Commands], explain: Explain = findings_of, *, serial: bool = False
) -> Callable[Concatenate[str, P], OperationMeta]:
    """Make a pyinfra operation of a generator of commands.

    It is called with the sentence that users read while it runs: `load("Load the modules", …)`. A
    preview adds the sentence to the report's steps if there would be commands. An error while it
    runs fails it on this host with a finding; other hosts continue. The first command of a host
    takes the host's lock. `explain`: turns an exception into findings; `serial`: hosts run it one
    after the other; otherwise, no host waits in it for another.
    """
    how = {"_serial": True} if serial else {}
    inner = cast(Any, pyinfra_operation()(_guarded(function, explain)))

    @wraps(function)
    def named(sentence: str, /, *args: P.args, **kwargs: P.kwargs) -> OperationMeta:
        if not RunReport.previews(state):
            planned = cast(OperationMeta, inner(*args, name=sentence, **how, **kwargs))
            if not (serial or CLUSTERS in host.groups):
                mark_independent(ctx_state.get(), planned._hash)
            return planned
        needed = next(function(*args, **kwargs), None) is not None
        if needed:
            RunReport.of(state).host(host.name).steps.append(sentence)
        return OperationMeta(sentence, needed)

    return named


def one_by_one(function: Callable[P, Commands]) -> Callable[Concatenate[str, P], OperationMeta]:
    """An operation that runs on one host at a time."""
    return host_operation(function, serial=True)


def _guarded(function: Callable[P, Commands], explain: Explain) -> Callable[P, Commands]:
    """The commands of `function`; an exception between them becomes a command that fails."""

    @wraps(function)
    def commands(*args: P.args, **kwargs: P.kwargs) -> Commands:
        if not state.is_executing:  # planning; one_host() handles errors
            yield from function(*args, **kwargs)
            return
        try:
            lock = lock_of(host)
            for command in function(*args, **kwargs):
                if lock and not lock.held:
                    yield watch_command(FunctionCommand(acquire_lock, (lock,), {}), explain)
                if lock and not isinstance(command, FunctionCommand):  # functions only wait
                    lock.used = True
                yield watch_command(as_step(command) if lock else command, explain)
        except Exception as error:  # noqa: BLE001 - the boundary
            yield fail_with(*explain(error, current_step(state, host)))

    return commands


def host_role(name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a pyinfra deploy of a function. `name` precedes the sentences of its operations."""
    return cast(Callable[[Callable[P, None]], Callable[P, None]], pyinfra_deploy(name))
