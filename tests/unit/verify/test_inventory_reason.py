"""The reason why an inventory cannot be loaded, without lines of the file and without secrets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.verify.inventory import load_targets, pyinfra_reason

SECRET = "Hunter2Plant"
MORE = pytest.mark.extended
TRACEBACK = """\
--> Loading config...
--> Loading inventory...
--> An exception occurred in: inv.py:

Traceback (most recent call last):
  File "/lib/pyinfra_cli/util.py", line 66, in exec_file
    exec(PYTHON_CODES[filename], data)
  File "inv.py", line 6, in <module>
    ask(password="Hunter2Plant")
    ~~~^^^^^^^^^^^^^^^^^^^^^^^^^
"""
CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (TRACEBACK + "ValueError\n\n", "ValueError (inv.py, line 6)"),
        (TRACEBACK + "RuntimeError: two\n\nlines\n  of it\n", "of it (inv.py, line 6)"),
        (TRACEBACK + "OSError: such host\nGF999 x\n", "GF999 x (inv.py, line 6)"),
        (TRACEBACK + f"KeyError: 'a'\n{CAUSE}RuntimeError: no a\n",
         "RuntimeError: no a (inv.py, line 6)"),
        (f"{TRACEBACK}KeyError: 'a'\n{CAUSE}{TRACEBACK}OSError: no a\n",
         "OSError: no a (inv.py, line 6)"),
        (
            f'{TRACEBACK}  File "b.py", line 2\n    x = "{SECRET}\n        ^\nSyntaxError: open\n',
            'SyntaxError: open (b.py, line 2)',
        ),
        ("--> Loading\nno such host\n    more\n", "more"),
        ("--> pyinfra error: No such connector\n", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_reason_in_what_pyinfra_prints(printed: str, why: str) -> None:
    assert pyinfra_reason(printed) == why


GATHER = """
from gpufleet.core.stopped import Stopped
from gpufleet.host.gather import gather_facts
try:
    gather_facts("inv.py")
except Stopped as error:
    print(error)
"""

UPGRADE = """
from gpufleet.upgrade.operations.session import Session
print(len(Session("inv.py", ()).inventory))
"""


def of_a_run() -> str:
    with pytest.raises(Stopped) as found:
        load_targets("inv.py")
    return str(found.value)


def of_a_table() -> str:
    """In a separate process, in which gevent replaces parts of the standard library."""
    return printed(GATHER)


def printed(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    ).stdout


OPEN = f'gpu_nodes = [("a", {{"ssh_password": "{SECRET}}})]\n'
RAISED = 'raise RuntimeError("no such host\\nGF999 all fine")\n'
MUTE = "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\nraise Mute\n"


@pytest.mark.parametrize(
    ("text", "ends", "why"),
    [
        (OPEN, of_a_run, "SyntaxError: unterminated string literal"),
        (OPEN, of_a_table, "SyntaxError: unterminated string literal"),
        (
            "import json\ngpu_nodes = json.loads('[')\n",
            of_a_table,
            "JSONDecodeError: Expecting value: line 1 column 2 (char 1) (inv.py, line 2)",
        ),
        pytest.param(RAISED, of_a_run, "GF999 all fine", marks=MORE),
        pytest.param(RAISED, of_a_table, "RuntimeError: no such host\\nGF999 all fine", marks=MORE),
        pytest.param(MUTE, of_a_run, "Mute: <exception str() failed>", marks=MORE),
        pytest.param(MUTE, of_a_table, "Mute: <Mute whose str raises ValueError>", marks=MORE),
    ],
)
def test_it_is_one_line_without_the_secrets_of_the_file(
    text: str, ends: Callable[[], str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inv.py").write_text(text)
    said = ends()
    assert f"Cannot load inventory inv.py: {why}" in said
    assert SECRET not in said


def test_what_an_inventory_prints_is_not_on_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There `status --json` and `upgrade status --json` print their result."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inv.py").write_text("print('2 hosts of Terraform')\ngpu_nodes = []\n")
    assert of_a_table().startswith("GF701 ")
    assert printed(UPGRADE) == "0\n"


def test_a_group_with_other_entries_than_hosts_is_refused(tmp_path: Path) -> None:
    """pyinfra would go on without the group: a run would miss these hosts."""
    file = tmp_path / "inv.py"
    file.write_text('all_hosts = ["a"]\ngpu_nodes = ["a b", 3]\n')
    with pytest.raises(Stopped, match=r"GF701.*group gpu_nodes has an entry"):
        load_targets(str(file))


def test_a_list_of_the_users_that_is_no_group_stays(tmp_path: Path) -> None:
    file = tmp_path / "inv.py"
    file.write_text('ports = [80, 443]\ngpu_nodes = ["a"]\n')
    assert [target.name for target in load_targets(str(file))] == ["a"]
