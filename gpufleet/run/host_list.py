"""Lists the hosts of an inventory with pyinfra's command, in a process of its own."""

from __future__ import annotations

import logging
from typing import Any

from click import ClickException

from gpufleet.core.inventory import CLUSTERS, CONTROL_PLANE, NODES_GROUP

IGNORED_GROUP = "Ignoring host group"  # start of pyinfra's warning


def refuse_ignored_groups() -> None:
    """Let pyinfra refuse an inventory in which a group of gpufleet's has other entries than hosts:
    it would go on without that group. Other lists, such as of ports, need not be groups."""
    logging.getLogger("pyinfra").addFilter(_refuse_ignored_group)


def _refuse_ignored_group(record: logging.LogRecord) -> bool:
    for name in (NODES_GROUP, CLUSTERS, CONTROL_PLANE):
        if str(record.msg).startswith(IGNORED_GROUP) and record.args == (name,):
            why = f"group {name} has an entry that is neither a name nor (name, data)"
            raise ClickException(why)
    return True


def print_hosts() -> None:
    """Run pyinfra's command; for `--json INVENTORY debug-inventory`. Data that JSON cannot express,
    such as the client of a vault in group_data, becomes text: pyinfra's own list would fail.

    Source: https://github.com/pyinfra-dev/pyinfra/issues/1297 (read 2026-11-28)
    """
    from pyinfra_cli import prints  # gevent replaces parts of the standard library
    from pyinfra_cli.main import main

    encode = prints.json_encode

    def as_text(obj: Any) -> Any:
        try:
            return encode(obj)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - of the user's own class
            return f"<{type(obj).__name__}>"

    prints.json_encode = as_text
    refuse_ignored_groups()
    main()  # type: ignore[no-untyped-call]
