"""Records the commands that a run sends to pyinfra's fake connector."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyinfra.connectors.fake import FakeConnector


class Calls:
    """`calls`: "script host" of each command, in order; `words`: the commands; `inputs`: their
    standard inputs. `scripts` matches the name of a script in a command."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scripts: re.Pattern[str]) -> None:
        self.calls: list[str] = []
        self.words: list[str] = []
        self.inputs: list[str] = []
        original = FakeConnector.run_shell_command

        def noted(connector: FakeConnector, command: Any, *rest: Any, **how: Any) -> Any:
            name = connector.host.name.removeprefix("@fake/")
            self.words.append(str(command))
            self.inputs += how.get("_stdin") or []
            if found := scripts.search(str(command)):
                self.calls.append(f"{found[found.lastindex or 0]} {name}")
            return original(connector, command, *rest, **how)

        monkeypatch.setattr(FakeConnector, "run_shell_command", noted)
