"""Adds the results of a host's operations to its report."""

from __future__ import annotations

import re

from pyinfra.api import Host
from pyinfra.api.operation import OperationMeta

from gpufleet.core.causes import find_cause
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import bar_lines, one_line
from gpufleet.run import findings
from gpufleet.run.report import HostReport

ERROR_LINES = 12  # of a failed operation's output that the report repeats


def own_line(host: str) -> re.Pattern[str]:
    """Matches the start of a failed step's explanation, as shell.explain writes it."""
    return re.compile(rf"GF\d{{3}} {re.escape(one_line(host))}: ")


def _shown_lines(meta: OperationMeta, own: re.Pattern[str]) -> list[str]:
    """The first lines of a failed step of gpufleet, which begin with its finding, and the last ones
    of the user's, which end with the reason."""
    said = (meta.stderr_lines, meta.stdout_lines)
    lines = next(filter(None, ([line for line in text if line.strip()] for text in said)), [])
    first = lines[:ERROR_LINES]
    return first if any(map(own.match, first)) else lines[-ERROR_LINES:]


def add_operations(part: HostReport, host: Host, *, begun: bool) -> None:
    """Count changes, and report operations that failed or that the end of the run interrupted.
    `begun`: an operation of the host was started."""
    for op_hash, data in host.state.ops[host].items():
        meta = data.operation_meta
        name = ", ".join(host.state.get_op_meta(op_hash).names)
        if not meta.is_complete():
            if begun and not part.failed:
                part.failed = True
                part.findings.append(findings.CUT_SHORT(operation=name))
        elif meta.did_change():
            part.changed += 1
            part.operations.append(name)
        elif meta.did_error():
            shown = list(map(hide_secrets, _shown_lines(meta, own_line(host.name))))
            part.errors.append("\n".join([one_line(name), *bar_lines(shown)]))
            known = any(found.blocks for found in part.findings)
            if not known and not any(map(own_line(host.name).match, shown)):
                cause = find_cause(shown)
                said = cause.text if cause else quote_last_line("\n".join(shown)).rstrip(".")
                said = said or "no message"
                part.findings.append(findings.STEP_FAILED(operation=name, said=said))
    part.cap_changes()
