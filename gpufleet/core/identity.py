"""Identifies the user of this run, for the locks on hosts and clusters."""

from __future__ import annotations

import getpass
import os
import platform
import re
import secrets
from datetime import datetime, timezone

_UNPRINTABLE = re.compile(r"[^ -~]")


def user_name() -> str:
    """The name of this process's user, or its number if it has no name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return f"user {os.getuid()}"


def new_identity() -> str:
    """A unique identity in printable ASCII: user@machine, process id, time and random digits."""
    since = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    who = f"{user_name()}@{platform.node()}, process {os.getpid()}, since {since}"
    return f"{_UNPRINTABLE.sub('?', who)} [{secrets.token_hex(8)}]"
