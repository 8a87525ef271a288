"""Reads the facts of a host with one command, and never prints its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pyinfra.api import Host, StringCommand

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.script import LINE_END, gather_command
from gpufleet.facts.sections import FactsError
from gpufleet.host.asking import OUTPUT_MARK, host_arguments
from gpufleet.host.findings import FACTS_UNREADABLE
from gpufleet.host.liveness import watch_connection
from gpufleet.host.lock import is_our_lock
from gpufleet.host.sudo import run_on_host
from gpufleet.host.trouble import explain_error, explain_failed_command

DURING_FACTS = "while its facts were gathered"


def read_facts(
    host: Host,
    paths: Sequence[str] = (),
    ports: Sequence[int] = (),
    how: Mapping[str, Any] | None = None,
    *,
    health: bool = False,
) -> NodeFacts | Finding:
    """NodeFacts of a host, or a blocker with the reason if they cannot be read. Raises nothing.

    `paths`: further files to read, for example a containerd configuration in an unusual place.
    `ports`: TCP ports with listeners to report. `how`: the connector's arguments for this host, if
    they are known. `health`: read the health of the GPUs, too.
    """
    try:
        watch_connection(host)
        command = StringCommand(gather_command(paths, ports, mark=OUTPUT_MARK, health=health))
        # Never printed, not even at -vvv: it contains whole files with their passwords.
        ok, output = run_on_host(host, command, **(host_arguments(host) if how is None else how))
        lines = [line for part in output.stdout_lines for line in part.split(LINE_END)]
        if not ok:
            # output before the facts, for example of nologin
            start = next((i for i, line in enumerate(lines) if OUTPUT_MARK in line), len(lines))
            said = [*output.stderr_lines, *lines[:start]]
            return explain_failed_command(host, said, DURING_FACTS)
        machine_id, boot_id = _controller()
        facts = parse_node_facts(
            lines, mark=OUTPUT_MARK, controller_machine_id=machine_id, controller_boot_id=boot_id
        )
        return replace(facts, busy=facts.busy and not is_our_lock(facts.run_lock, host.name))
    except FactsError as error:
        return FACTS_UNREADABLE(host=host.name, doing=DURING_FACTS, problem=str(error))
    except Exception as error:  # noqa: BLE001 - the boundary
        return explain_error(host, error, DURING_FACTS)


@cache
def _controller() -> tuple[str, str]:
    """Machine id and boot id of the machine that gpufleet runs on, "" if it lacks one."""
    return _read("/etc/machine-id"), _read("/proc/sys/kernel/random/boot_id")


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""
