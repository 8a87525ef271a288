"""Collects what happens on each host during a pyinfra run and shows it at the end."""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path

from pyinfra.api import BaseStateCallback, Host, State
from rich.console import Console

from gpufleet.findings import Finding
from gpufleet.report import HostReport, show, write_json

UNREACHABLE = (
    "it could not be reached, or its facts could not be read: pyinfra's lines above say why.\n"
    "  See that `ssh` reaches it with the inventory's user and key; then run again with --limit."
)
ENDED_EARLY = (
    "the run ended before this operation did: what it had begun may be half done.\n"
    "  See the error above, then run again: what is there already is not done twice."
)
ERROR_LINES = 12  # of a failed operation's output that the report repeats


class RunReport(BaseStateCallback):
    """The report of one run; one per pyinfra state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.hosts: dict[str, HostReport] = {}
        self.began: dict[str, float] = {}
        self.plan_only = False
        self.left_out: set[str] = set()

    @classmethod
    def of(cls, state: State) -> RunReport:
        """The report of this run, made and hooked in when the first host asks."""
        for handler in state.callback_handlers:
            if isinstance(handler, cls):
                return handler
        report = cls(state)
        state.add_callback_handler(report)
        atexit.register(report.close)
        return report

    @classmethod
    def previews(cls, state: State) -> bool:
        """Whether this run only says what would be done."""
        return any(isinstance(found, cls) and found.plan_only for found in state.callback_handlers)

    def host(self, name: str) -> HostReport:
        """The part of one host."""
        if name not in self.hosts:
            self.hosts[name] = HostReport(name)
        return self.hosts[name]

    def block(self, host: Host, problems: list[Finding]) -> None:
        """Stop one host before anything was changed on it; the others go on."""
        part = self.host(host.name)
        part.findings += [problem for problem in problems if problem not in part.findings]
        part.failed = True
        self.state.fail_hosts({self.state.inventory.get_host(host.name)})

    def leave_out(self, name: str) -> None:
        """Say nothing of a host that the deploy is not for."""
        self.left_out.add(name)

    def operation_host_start(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str
    ) -> None:
        self.began[host.name] = time.monotonic()

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        self._count(host.name)

    def operation_host_error(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0
    ) -> None:
        self._count(host.name)

    def _count(self, name: str) -> None:
        """Add the time of one operation; waiting for other hosts in between does not count."""
        self.host(name).seconds += time.monotonic() - self.began.pop(name)

    def gather(self) -> list[HostReport]:
        """Every host of the run, with what its operations did."""
        for host in self._taking_part():
            part = self.host(host.name)
            part.failed = part.failed or host in self.state.failed_hosts
            self._add_operations(host, part)
            if part.failed and not part.errors and not part.findings:
                part.errors.append(UNREACHABLE)
        return sorted(self.hosts.values(), key=lambda part: self._position(part.name))

    def _add_operations(self, host: Host, part: HostReport) -> None:
        """Count what changed; say what failed, or what an end of the whole run cut short."""
        for op_hash, data in self.state.ops[host].items():
            meta = data.operation_meta
            name = ", ".join(self.state.get_op_meta(op_hash).names)
            if not meta.is_complete():
                if self.state.is_executing and not part.failed:
                    part.failed = True
                    part.errors.append(f"{name}: {ENDED_EARLY}")
            elif meta.did_change():
                part.changed += 1
            elif meta.did_error():
                lines = [line for line in meta.stderr_lines if line.strip()]
                part.errors.append("\n  ".join([name, *lines[:ERROR_LINES]]))

    def _taking_part(self) -> list[Host]:
        """The hosts that --limit left in the run, in the inventory's order."""
        limit = self.state.limit_hosts
        return [
            host
            for host in self.state.inventory
            if (limit is None or host in limit) and host.name not in self.left_out
        ]

    def _position(self, name: str) -> int:
        return [host.name for host in self.state.inventory].index(name)

    def close(self) -> None:
        """Show the table on standard error and write the JSON that GPUFLEET_REPORT asks for."""
        hosts = self.gather()
        dry = self.plan_only or not self.state.is_executing
        if dry:
            for part in hosts:
                part.changed = len(part.steps)
        show(Console(stderr=True, width=_width()), hosts, dry=dry)
        path = os.environ.get("GPUFLEET_REPORT")
        if path:
            write_json(Path(path), hosts)


def _width() -> int | None:
    """Wide enough for the table where there is no terminal to ask."""
    return None if os.isatty(2) else 140
