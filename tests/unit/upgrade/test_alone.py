"""pyinfra with deploys/upgrade_driver.py alone starts a run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gpufleet.run.invocation import Invocation
from gpufleet.upgrade.operations import alone

DEPLOY = "deploys/upgrade_driver.py"
TYPED = (
    (["inv.py", DEPLOY], ["upgrade", "start", "inv.py"]),
    (["--dry", "inv.py", DEPLOY], ["upgrade", "start", "inv.py", "--plan"]),
    (
        ["-y", "--limit", "a", "--limit=b", "--data", "a=1", "inv.py", DEPLOY, "-v"],
        ["upgrade", "start", "inv.py", "--limit", "a", "--limit", "b", "--yes", "--",
         "--data", "a=1", "-v"],
    ),
    (["inv.py", "deploys/gpu_node.py", DEPLOY], []),
    (["--exclude", "a", "inv.py", DEPLOY], []),
)  # fmt: skip
PARSED = """\
import json, sys, pyinfra
from gpufleet.run.invocation import read_invocation
from gpufleet.upgrade.operations import alone
pyinfra.is_cli, found = True, []
for words in json.load(sys.stdin):
    sys.argv = ["pyinfra", *words]
    found.append(alone.run_words(read_invocation()))
print(json.dumps(found))
"""


def test_the_command_line_becomes_one_of_gpufleet() -> None:
    """In a process of its own: pyinfra's parser makes gevent replace parts of the library."""
    asked = json.dumps([typed for typed, _ in TYPED])
    words = [sys.executable, "-c", PARSED]
    done = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [words for _, words in TYPED]


def test_the_process_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda program, words: ran.append(words))
    typed = Invocation(inventory="inv.py", deploys=(DEPLOY,))
    monkeypatch.setattr(alone, "read_invocation", lambda: typed)
    alone.start_run(lambda: ran.append(["prepared"]))
    assert ran.pop(0) == ["prepared"]  # a live display would keep the cursor hidden
    assert ran[0][-3:] == ["upgrade", "start", "inv.py"]
    assert "gpufleet.cli" in ran[0][-4]


def test_python_starts_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.execv", lambda program, words: pytest.fail("it was replaced"))
    alone.start_run(lambda: pytest.fail("the display was ended"))
