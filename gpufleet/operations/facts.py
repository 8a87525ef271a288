"""The one fact that gpufleet gathers of a host, as a pyinfra fact."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.script import gather_command
from gpufleet.facts.sections import FactsError


class NodeFactsFact(FactBase[NodeFacts | None]):
    """NodeFacts of a host, in one command.

    None where the host's output cannot be read: pyinfra then fails this host alone, and says
    which section was malformed. `paths` are further files to read, for example a containerd
    configuration that is not in its usual place. `effective` asks every runtime for its effective
    configuration too, at the price of about 60 ms on the host for each. `ports` are TCP ports of
    which is told who listens there.
    """

    def command(
        self, paths: Sequence[str] = (), effective: bool = False, ports: Sequence[int] = ()
    ) -> str:
        return gather_command(paths, effective, ports)

    def process(self, output: list[str]) -> NodeFacts:
        machine_id, boot_id = _controller()
        try:
            facts = parse_node_facts(
                output, controller_machine_id=machine_id, controller_boot_id=boot_id
            )
        except FactsError as error:
            # Any other exception would end the run for the whole fleet.
            raise FactProcessError(str(error)) from error
        return replace(facts, received=int(time.time()))


@cache
def _controller() -> tuple[str, str]:
    """Machine id and boot id of the machine that gpufleet runs on; "" where it has none."""
    return _read("/etc/machine-id"), _read("/proc/sys/kernel/random/boot_id")


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""
