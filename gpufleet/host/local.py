"""Reads the facts of the machine that gpufleet runs on, without pyinfra and an inventory."""

from __future__ import annotations

import secrets

from gpufleet.core.findings import Finding
from gpufleet.core.names import LOCAL_HOST as LOCAL_HOST
from gpufleet.core.process import Process
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.script import LINE_END, gather_command
from gpufleet.facts.sections import FactsError
from gpufleet.host.findings import FACTS_UNREADABLE


def read_this_machine(*, health: bool) -> NodeFacts | Finding:
    """The facts of this machine, or a blocker with the reason if they cannot be read.

    `health`: read the health of the GPUs, too."""
    mark = secrets.token_hex(16)
    done = Process(["sh", "-c", gather_command(mark=mark, health=health)]).wait()
    try:
        return parse_node_facts(done.stdout.replace(LINE_END, "\n").split("\n"), mark=mark)
    except FactsError as error:
        doing = "while its facts were gathered"
        return FACTS_UNREADABLE(host=LOCAL_HOST, doing=doing, problem=str(error))
