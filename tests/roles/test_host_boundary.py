"""One host of six responds incorrectly: only that one stops, with the reason."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from paramiko import SSHException
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops

from gpufleet.facts.files import RECORD_PATH
from gpufleet.host import boundary
from gpufleet.host.boundary import one_host
from gpufleet.host.lock import HostLock
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import quote_command
from gpufleet.node.operations.node import current_node
from gpufleet.packages.operations.reading import LockHolder
from gpufleet.run.report import HostReport
from gpufleet.run.reporting import RunReport
from tests.roles.answers import facts_of, framed_lines
from tests.roles.host_boundary_setup import CAPTURE

SECRET = "hunter2secret"
HOSTS = [f"gpu-{number}" for number in range(1, 7)]
BROKEN = "gpu-3"


@host_operation
def work() -> Commands:
    """Query the holder of the package manager's lock, then change something."""
    holder = read_fact(LockHolder)
    yield quote_command("write-it-down", holder or "free")


def deploy() -> None:
    with one_host():
        if current_node():
            work("Work")


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock on every host is free; test_host_lock.py tests the lock."""
    monkeypatch.setattr(HostLock, "take", lambda *_: None)


@dataclass(frozen=True)
class Named:
    """A host of which only the name counts."""

    name: str


class Raising(dict[str, Any]):
    """Responses of a host whose connection raises at the first command with `word`."""

    def __init__(self, word: str, error: Exception) -> None:
        super().__init__()
        self.word, self.error = word, error


def run(broken: dict[Any, Any], monkeypatch: pytest.MonkeyPatch, **data: Any) -> RunReport:
    """A run on six hosts, of which one has the responses `broken` and this data."""
    healthy = {"gpufleet-lock_holder": framed_lines(""), "uname -nrm": facts_of(CAPTURE)}
    common = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "driver_enabled": False,
              "toolkit_enabled": False}  # fmt: skip
    hosts = [
        (f"@fake/{name}",
         {**common, **(data if name == BROKEN else {}),
          "fake_responses": {**healthy, **broken} if name == BROKEN else healthy})
        for name in HOSTS
    ]  # fmt: skip
    state = State(Inventory((hosts, {})), Config(), check_for_changes=False)
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)
    if isinstance(broken, Raising):
        connector = state.inventory.get_host(f"@fake/{BROKEN}").connector
        answer = connector.run_shell_command

        def cut(command: Any, **arguments: Any) -> Any:
            if broken.word in str(command):
                raise broken.error
            return answer(command, **arguments)

        monkeypatch.setattr(connector, "run_shell_command", cut)
    add_deploy(state, deploy)
    run_ops(state)
    return report


def judged(report: RunReport) -> HostReport:
    """The report of the broken host, after a check that the remaining hosts succeeded."""
    parts = {part.name.removeprefix("@fake/"): part for part in report.gather()}
    assert sorted(parts) == HOSTS
    for name in HOSTS:
        if name != BROKEN:
            assert (parts[name].failed, parts[name].changed) == (False, 1)
    # the source of the exit status of pyinfra's command
    assert {host.name for host in report.state.failed_hosts} == {f"@fake/{BROKEN}"}
    return parts[BROKEN]


def with_file(path: str, content: str) -> str:
    """The captured facts with an additional file."""
    head, _, rest = CAPTURE.partition("@@files\n")
    listed, _, encoded = rest.partition("base64 ")
    old, _, tail = encoded.partition("\n")
    data = content.encode()
    all_of_it = base64.b64encode(base64.b64decode(old) + data).decode()
    listed = f"{listed}file {len(data)} 600 root {path}\n".replace(f"absent {path}\n", "")
    return f"{head}@@files\n{listed}base64 {all_of_it}\n{tail}"


def with_line(section: str, line: str) -> str:
    return CAPTURE.replace(f"@@{section}\n", f"@@{section}\n{line}\n")


DEEP = "[" * 3000 + "]" * 3000
ANSWERS: dict[str, tuple[str, str]] = {
    "nothing": ("", "GF502"),
    "only a banner": ("Welcome\n", "GF502"),
    "cut in a section": (CAPTURE[:900], "GF502"),
    "cut at the end": (CAPTURE.rpartition("@@")[0], "GF502"),
    "a section less": (CAPTURE.replace("@@gpu\n", ""), "GF502"),
    "no distribution": (CAPTURE.replace("ID=ubuntu", "XX=ubuntu"), "GF502"),
    "no boot id": (CAPTURE.replace("boot ", "shoe "), "GF502"),
    "a process without a number": (with_line("gpu", "process x /dev/nvidia0 sh"), "GF502"),
    "a module without a count": (with_line("modules", "module nvidia"), "GF502"),
    "a device without a class": (with_line("pci", "0000:17:00.0 0x2330"), "GF502"),
    "a clock that is none": (CAPTURE.replace("clock ", "clock tick"), "GF502"),
    "files that are not base64": (CAPTURE.replace("base64 ", "base64 %%%"), "GF502"),
    "a file with another size": (CAPTURE.replace("file 38 ", "file 39 "), "GF502"),
    "a line in the files": (with_line("files", f"password={SECRET}"), "GF502"),
    "a socket without an address": (with_line("collectors", "listen x 1"), "GF502"),
    "a record that is no JSON": (with_file(RECORD_PATH, f'{{"x": "{SECRET}'), "GF557"),
    "a record nested deep": (with_file(RECORD_PATH, DEEP), "GF557"),
    "a record that is a list": (with_file(RECORD_PATH, f'["{SECRET}"]'), "GF557"),
    "a record of a newer version": (with_file(RECORD_PATH, '{"schema": 2}'), "GF557"),
    "a record of odd types": (
        with_file(RECORD_PATH, json.dumps({"schema": 1, "driver": SECRET})), "GF557"),
    "not root": (CAPTURE.replace("\nuser 0\n", "\nuser 1000\n"), "GF505"),
}  # fmt: skip
SAYS = {
    "sudo: a password is required": "GF506",
    "sudo: sorry, you must have a tty to run sudo": "GF506",
    "sudo: 1 incorrect password attempt": "GF506",
    "admin is not in the sudoers file.": "GF506",
    "Sorry, user admin may not run sudo on gpu-07.": "GF506",
    "sudo: Maximum 3 incorrect authentication attempts": "GF506",  # sudo-rs
    "Unmatched '''.": "GF507",  # tcsh
    "doas: Operation not permitted": "GF506",
    "sh: 1: sudo: not found": "GF506",
    "This account is currently not available.": "GF507",
    "Killed": "GF502",
}
ERRORS: dict[str, tuple[str, Exception, str]] = {
    "the connection ends while facts are gathered": ("uname -nrm", EOFError(), "GF504"),
    "a channel cannot be opened": ("uname -nrm", SSHException("not active"), "GF504"),
    "a step times out": ("write-it-down", TimeoutError(), "GF504"),
    "the connection ends in a step": ("write-it-down", EOFError(), "GF504"),
    "the connection ends between two commands": ("lock_holder", ConnectionResetError(), "GF504"),
    "this machine has no space": ("uname -nrm", OSError(28, "No space left"), "GF503"),
    "a step has a fault": ("write-it-down", LookupError(SECRET), "GF503"),
    "the gathering has a fault": ("uname -nrm", RecursionError(SECRET), "GF503"),
}  # fmt: skip
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"driver_brunch": 1}, "GF201"),
    "a value that breaks a command": ({"toolkit_containerd_config": "/etc/a\n/b"}, "GF202"),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_facts_that_cannot_be_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, code = ANSWERS[kind]
    part = judged(run({"uname -nrm": facts_of(text)}, monkeypatch))
    assert part.failed
    assert [finding.code for finding in part.findings if finding.blocks] == [code]
    assert SECRET not in str(part)


@pytest.mark.parametrize("said", SAYS)
def test_a_host_that_refuses(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"success": False, "stdout" if "account" in said else "stderr": said}
    part = judged(run({"uname -nrm": refused}, monkeypatch))
    assert [finding.code for finding in part.findings] == [SAYS[said]]
    assert part.findings[0].remedy


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_that_pyinfra_would_end_the_run_for(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    word, error, code = ERRORS[kind]
    part = judged(run(Raising(word, error), monkeypatch))
    assert [finding.code for finding in part.findings if finding.blocks] == [code]
    if code == "GF504":
        doing = part.findings[-1].message
        assert ("in the step 'Work'" in doing) is (word != "uname -nrm"), doing
    if code == "GF503":  # the location is named
        assert " line " in part.findings[-1].message
    assert SECRET not in str(part)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", DATA)
def test_data_that_cannot_be_used(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, code = DATA[kind]
    part = judged(run({}, monkeypatch, **data))
    assert [finding.code for finding in part.findings if finding.blocks] == [code]


@pytest.mark.parametrize("where", ["load_node_settings", "plan_node", "_fill"])
def test_any_other_exception_stops_its_host_alone(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpufleet.node.operations import node

    inner: Callable[..., Any] = getattr(node, where)

    def faulty(*args: Any) -> Any:
        if node.host.name == f"@fake/{BROKEN}":
            raise KeyError(SECRET)
        return inner(*args)

    monkeypatch.setattr(node, where, faulty)
    part = judged(run({}, monkeypatch))
    (finding,) = part.findings if where != "_fill" else part.findings[-1:]
    assert finding.code == "GF503"
    assert "gpufleet.node.operations.node line" in finding.message
    assert SECRET not in finding.message


@pytest.mark.parametrize("error", [PyinfraError("no hosts remain"), KeyError("x")], ids=str)
@pytest.mark.parametrize("failed", [True, False])
def test_only_pyinfras_own_end_of_the_run_ends_it(
    error: Exception, failed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyinfra marks the host as failed, then raises if the limit of failures is exceeded."""
    one, blocked = Named("gpu-1"), list[str]()
    report = SimpleNamespace(block=lambda host, _: blocked.append(host.name))
    monkeypatch.setattr(boundary, "host", one)
    monkeypatch.setattr(boundary, "state", SimpleNamespace(failed_hosts={one} if failed else set()))
    monkeypatch.setattr(boundary, "RunReport", SimpleNamespace(of=lambda _: report))
    monkeypatch.setattr(boundary, "findings_of", lambda *_: [])
    ends = failed and isinstance(error, PyinfraError)
    with pytest.raises(PyinfraError) if ends else nullcontext(), one_host():
        raise error
    assert blocked == ([] if ends else ["gpu-1"])
