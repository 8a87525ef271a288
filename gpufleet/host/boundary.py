"""The boundary around one host: what goes wrong inside stops this host, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyinfra import host, logger, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.connectors.util import CommandOutput, OutputLine

from gpufleet.core.findings import Finding
from gpufleet.core.redact import redacted_lines
from gpufleet.core.visible import one_line
from gpufleet.host.asking import is_connected
from gpufleet.host.shell import explain
from gpufleet.host.sudo import run
from gpufleet.host.trouble import explain_error, refusal
from gpufleet.run.reporting import RunReport

Command = str | StringCommand | FunctionCommand


class Stopped(Exception):
    """The host cannot go on, for the reason that `finding` gives."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.code)
        self.finding = finding


@contextmanager
def one_host() -> Iterator[None]:
    """The code of a deploy for one host: an exception in it becomes a blocker of that host.

    pyinfra would end the run of all hosts. What ends the run on purpose still does: no host left,
    or more failed than --fail-percent allows.
    """
    try:
        yield
    except Exception as error:
        if type(error) is PyinfraError and host.name in {
            found.name for found in state.failed_hosts
        }:
            raise
        finding = finding_of(error, "while its plan was made")
        RunReport.of(state).block(host, [finding])


def finding_of(error: Exception, doing: str) -> Finding:
    """The blocker that an exception comes to on the host that runs now."""
    if isinstance(error, Stopped):
        return error.finding
    return explain_error(host, error, doing)


def watched(command: Command) -> StringCommand | FunctionCommand:
    """The same command, which fails with a finding where it would raise or lose its connection."""
    if isinstance(command, FunctionCommand):
        call = (command.function, command.args, command.kwargs)
        return FunctionCommand(_call, call, {}, **command.connector_arguments)
    if isinstance(command, str):
        return _Watched(command.strip())
    return _Watched(*command.bits, _separator=command.separator, **command.connector_arguments)


def failing(finding: Finding) -> FunctionCommand:
    """A command that does nothing but fail its operation for this reason."""
    return FunctionCommand(_fail, (finding,), {})


class _Watched(StringCommand):
    def execute(
        self, state: State, host: Host, connector_arguments: Any
    ) -> tuple[bool, CommandOutput]:
        doing = step(state, host)
        try:
            connector_arguments.update(self.connector_arguments)
            ok, output = run(
                host,
                self,
                print_output=state.print_output,
                print_input=state.print_input,
                **connector_arguments,
            )
        except Exception as error:  # noqa: BLE001 - the boundary
            return _fail(state, host, explain_error(host, error, doing)), CommandOutput([])
        if not ok:
            _say_if_lost(state, host, doing)
            _redact(output.combined_lines)
        return ok, output


def _redact(lines: list[OutputLine]) -> None:
    """Take the secrets out of what pyinfra prints, also those over several lines of one stream."""
    for stream in ("stdout", "stderr"):
        mine = [line for line in lines if line.buffer_name == stream]
        shown = redacted_lines([line.line for line in mine])
        for line, text in zip(mine, shown, strict=False):
            line.line = one_line(text)
        gone = set(map(id, mine[len(shown) :]))
        lines[:] = [line for line in lines if id(line) not in gone]


def _say_if_lost(state: State, host: Host, doing: str) -> None:
    """A command whose connection ends looks like one that failed without a word."""
    if not is_connected(host):
        _fail(state, host, refusal(host, [], doing))


def _call(
    state: State, host: Host, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> bool:
    """Call a function of ours; all of them take the state and the host first."""
    try:
        return function(state, host, *args, **kwargs) is not False
    except Exception as error:  # noqa: BLE001 - the boundary
        return _fail(state, host, finding_of(error, step(state, host)))


def _fail(state: State, host: Host, finding: Finding) -> bool:
    RunReport.of(state).host(host.name).findings.append(finding)
    logger.error(explain(host.name, finding))
    return False


def step(state: State, host: Host) -> str:
    """The current operation, for a message: in the step '…'."""
    found = host.executing_op_hash
    names = sorted(state.get_op_meta(found).names) if found else ["before the first"]
    return f"in the step {', '.join(names)!r}"
