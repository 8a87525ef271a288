"""The boundary around one host: an error inside stops this host, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyinfra import host, logger, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.connectors.util import CommandOutput

from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.host import shell
from gpufleet.host.asking import is_connected
from gpufleet.host.failed_output import for_people
from gpufleet.host.notices import parse_notices
from gpufleet.host.sudo import run_on_host
from gpufleet.host.trouble import explain_error, explain_failed_command
from gpufleet.run.reporting import RunReport

Command = str | StringCommand | FunctionCommand
Explain = Callable[[Exception, str], Sequence[Finding]]  # takes the error and the current activity


@contextmanager
def one_host() -> Iterator[None]:
    """Run a deploy's code for one host, and turn an exception into a blocker of that host.

    pyinfra would end the run of all hosts. Errors that end the run on purpose still do: no host
    left, or more failed hosts than --fail-percent allows.
    """
    try:
        yield
    except Exception as error:
        if type(error) is PyinfraError and host.name in {
            found.name for found in state.failed_hosts
        }:
            raise
        RunReport.of(state).block(host, list(findings_of(error, "while its plan was made")))


def findings_of(error: Exception, doing: str) -> Sequence[Finding]:
    """The blockers for an exception on the current host."""
    if isinstance(error, Stopped):
        return error.findings
    return (explain_error(host, error, doing),)


def watch_command(command: Command, explain: Explain) -> StringCommand | FunctionCommand:
    """The command, which fails with findings instead of raising or losing its connection."""
    if isinstance(command, FunctionCommand):
        return FunctionCommand(_call, (explain, command), {}, **command.connector_arguments)
    if isinstance(command, str):
        return _Watched(command.strip())
    return _Watched(*command.bits, _separator=command.separator, **command.connector_arguments)


def fail_with(*found: Finding) -> FunctionCommand:
    """A command that only fails its operation, with these findings."""
    return FunctionCommand(_fail, found, {})


class _Watched(StringCommand):
    def execute(
        self, state: State, host: Host, connector_arguments: Any
    ) -> tuple[bool, CommandOutput]:
        doing = current_step(state, host)
        try:
            connector_arguments.update(self.connector_arguments)
            ok, output = run_on_host(
                host,
                self,
                print_output=state.print_output,
                print_input=state.print_input,
                **connector_arguments,
            )
        except Exception as error:  # noqa: BLE001 - the boundary
            return _fail(state, host, explain_error(host, error, doing)), CommandOutput([])
        if not ok:
            if not is_connected(host):  # otherwise looks like a failure without a message
                _fail(state, host, explain_failed_command(host, [], doing))
            for_people(host.name, output.combined_lines)
        _report(state, host, list(parse_notices(output.stdout_lines)))
        return ok, output


def _call(state: State, host: Host, explain: Explain, command: FunctionCommand) -> bool:
    """Call a command's function with the state and the host first, and report its exceptions."""
    try:
        return command.function(state, host, *command.args, **command.kwargs) is not False
    except Exception as error:  # noqa: BLE001 - the boundary
        return _fail(state, host, *explain(error, current_step(state, host)))


def _fail(state: State, host: Host, *found: Finding) -> bool:
    _report(state, host, found)
    for finding in found:
        logger.error(shell.explain_finding(host.name, finding))
    return False


def _report(state: State, host: Host, found: Sequence[Finding]) -> None:
    if found:
        part = RunReport.of(state).host(host.name)
        part.findings += [finding for finding in found if finding not in part.findings]


def current_step(state: State, host: Host) -> str:
    """The name of the current operation, for a message: in the step '…'."""
    found = host.executing_op_hash
    names = sorted(state.get_op_meta(found).names) if found else ["before the first"]
    return f"in the step {', '.join(names)!r}"
