"""Exit status and message of a failed command of the sandbox."""

from __future__ import annotations

import click

from gpufleet.core.exit_status import ExitStatus
from gpufleet_sandbox.errors import SandboxError, kinds

# Invalid values on the command line; nothing was changed.
_USAGE = (
    kinds.UNKNOWN_HOST,
    kinds.UNKNOWN_FAULT,
    kinds.UNKNOWN_KUBERNETES,
    kinds.BAD_CLUSTER_NAME,
)


class WrongUsage(click.ClickException):
    """An invalid command line; nothing was changed."""

    exit_code = ExitStatus.USAGE


def click_error(error: SandboxError) -> click.ClickException:
    """The click exception with the error's text and the exit status of exit-status.md."""
    wrong = error.finding.code in {kind.code for kind in _USAGE}
    return WrongUsage(str(error)) if wrong else click.ClickException(str(error))
