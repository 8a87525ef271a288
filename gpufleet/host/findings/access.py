"""The way to a host, its privileges, and other runs on it."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

UNEXPECTED = Kind(
    "GF503",
    Severity.BLOCKER,
    "An error in gpufleet",
    "gpufleet could not go on with this host: {error} at {place}, {doing}.",
    "Run again with this host alone (--limit). If that fails too, report the error and the place; "
    "the other hosts are not affected.",
)

CONNECTION_LOST = Kind(
    "GF504",
    Severity.BLOCKER,
    "The connection was lost",
    "the connection to the host was lost {doing}: {cause}.",
    "See that the host is up and `ssh` reaches it, then run again: what is done already is not "
    "done twice.",
)

NOT_ROOT = Kind(
    "GF505",
    Severity.BLOCKER,
    "Commands do not run as root",
    "commands run on the host as a user who is not root, so nothing can be installed.",
    "Set _sudo = True in the inventory (or _doas, _dzdo, _su_user), or log in as root.",
)

PRIVILEGES_REFUSED = Kind(
    "GF506",
    Severity.BLOCKER,
    "The host does not let commands run as root",
    "{cause}.",
    "{remedy}",
)

SU_PASSWORD = Kind(
    "GF558",
    Severity.BLOCKER,
    "su with a password cannot be used",
    "_su_password is set: su takes the password where files come in, so that they cannot be handed "
    "to the host without others reading them.",
    "Use sudo instead (_sudo, with or without _sudo_password), or log in as root. _su_user without "
    "a password works.",
)

NO_SHELL = Kind(
    "GF507",
    Severity.BLOCKER,
    "The user has no shell",
    "the host runs no commands for the user of the connection: {cause}.",
    "Connect as a user with a login shell (ssh_user), or give this one a shell: "
    "usermod -s /bin/sh USER",
)

RECORD_UNUSABLE = Kind(
    "GF557",
    Severity.BLOCKER,
    "The record of what was installed cannot be used",
    "{path} on the host cannot be used: {problem}. Without it, gpufleet does not know what on the "
    "host is its own.",
    "If a newer gpufleet wrote it, use that version. Else put a copy of it from {folder} back, or "
    "move it away: then what is there counts as the user's.",
)

# What a run has done to a host whose lock it does not get: before its first change, and later.
NOTHING, NO_MORE = "nothing", "nothing more"

ANOTHER_RUN = Kind(
    "GF508",
    Severity.BLOCKER,
    "Another run is at work on the host",
    "another run of gpufleet is at work on this host: {holder}. This run changed {done}.",
    "Wait until the other run has ended, then run again. Its lock goes when it ends, is killed or "
    "loses its connection, and the step has ended that it had begun on the host (to see that one: "
    "fuser -v /run/gpufleet.lock.steps).",
)

SAME_MACHINE = Kind(
    "GF559",
    Severity.BLOCKER,
    "Two names of the inventory are one machine",
    "{this} and {other} are names of the same machine, and this run changes it as {other}. As "
    "{this} it changed {done}.",
    "Take one of the two names out of the inventory, or correct its address; until then, choose "
    "one of them with --limit.",
)

CHANGED_SINCE = Kind(
    "GF509",
    Severity.BLOCKER,
    "Another run changed the host",
    "another run of gpufleet was at work on this host since this run looked at it: {holder}. "
    "This run changed {done}.",
    "Run again: the next run plans from what the host is now.",
)
