"""Reads facts from a host while operations run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, cast

from pyinfra import host, state
from pyinfra.api import FactBase, StringCommand

from gpufleet.core.stopped import Stopped
from gpufleet.facts.model import RUN_LOCK
from gpufleet.host.asking import frame_command, framed_answer, host_arguments
from gpufleet.host.boundary import current_step
from gpufleet.host.lock import is_our_lock
from gpufleet.host.shell import script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.host.trouble import explain_failed_command

T = TypeVar("T")
Within = Callable[[StringCommand], StringCommand]


class FactReader(Protocol):
    """The type of `read_fact`, or of a function that wraps the fact's command first."""

    def __call__(self, fact: type[FactBase[T]], *args: Any) -> T: ...


def read_fact(fact: type[FactBase[T]], *args: Any, within: Within | None = None) -> T:
    """Read a fact from the host of this operation or deploy. `within`: wraps the fact's command.

    Raises Stopped if the host does not answer: pyinfra would continue with the fact's default.
    """
    asked = fact()
    command = cast(StringCommand, asked.command(*args))
    ok, output = run_on_host(
        host,
        within(command) if within else command,
        print_output=state.print_fact_output,
        print_input=state.print_fact_input,
        **host_arguments(host),
    )
    if not ok:
        raise Stopped(explain_failed_command(host, output.stderr_lines, current_step(state, host)))
    return asked.process(output.stdout_lines)


class HostHolder(FactBase[str]):
    """The name of another gpufleet run that works on the host, or ""."""

    def command(self) -> StringCommand:
        return frame_command(script_command("host/host_holder", RUN_LOCK))

    def process(self, output: Iterable[str]) -> str:
        text = "".join(framed_answer(output) or ()).strip()
        return "" if is_our_lock(text, host.name) else text
