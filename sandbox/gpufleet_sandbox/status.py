"""How a command of the sandbox ends that cannot go on."""

from __future__ import annotations

import click

from gpufleet.core.exit_status import ExitStatus
from gpufleet_sandbox.errors import SandboxError, kinds

# Values on the command line that there are none of; nothing was done.
_USAGE = (
    kinds.UNKNOWN_HOST,
    kinds.UNKNOWN_FAULT,
    kinds.UNKNOWN_KUBERNETES,
    kinds.BAD_CLUSTER_NAME,
)


class WrongUsage(click.ClickException):
    """A command line that nothing was done for."""

    exit_code = ExitStatus.USAGE


def ending(error: SandboxError) -> click.ClickException:
    """What click ends the command with: its text, and the exit status of docs/exit-status.md."""
    wrong = error.finding.code in {kind.code for kind in _USAGE}
    return WrongUsage(str(error)) if wrong else click.ClickException(str(error))
