"""Lists the hosts of an inventory with pyinfra's command, in a process of its own."""

from __future__ import annotations

from typing import Any


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
    main()  # type: ignore[no-untyped-call]
