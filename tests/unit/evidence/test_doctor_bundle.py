"""`gpufleet doctor --bundle`: one archive, with hosts that fail in all ways and planted secrets."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from paramiko import SSHException
from pyinfra.api import Inventory
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors.fake import FakeConnector
from pyinfra.connectors.util import CommandOutput, OutputLine
from pyinfra.context import ctx_inventory, ctx_state

from gpufleet.cli import diagnosis, doctor, evidence, main
from gpufleet.core.live import QUIET
from gpufleet.evidence import archive as writing
from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.host import facts as host_facts
from gpufleet.host import gather
from gpufleet.host.gather import GatherProgress
from gpufleet.status.operations import read_hosts
from gpufleet.verify.inventory import Target
from tests.unit.doctor.machines import machine
from tests.unit.evidence.evidence_setup import item, printed, unpacked
from tests.unit.status.fleets import DRIVER_ALONE, NOW

pytestmark = pytest.mark.claim(
    "`doctor --bundle` writes no secret that gpufleet knows, and no part of an archive.", level=1
)

SECRET = "s3cret-of-the-inventory"
QUICK = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "my_password": SECRET, **DRIVER_ALONE}
LOG = item("logs/docker.service.log", "a line\n")
Answer = Callable[[], list[str]]
Run = Callable[..., Result]


def with_files(**texts: str) -> NodeFacts:
    """A healthy machine with these files in /etc."""
    files = {f"/etc/{name}": ManagedFile(f"/etc/{name}", text) for name, text in texts.items()}
    found = machine()
    return replace(found, files={**found.files, **files})


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out/case.tar.gz"


@pytest.fixture
def commands() -> list[str]:
    """The commands that hosts were given."""
    return []


def read(inventory: str, limit: Sequence[str], **how: Any) -> Any:
    """The hosts without progress: it imports what makes gevent replace the standard library."""
    return read_hosts(inventory, limit, GatherProgress(), **how)


@pytest.fixture
def run(
    tmp_path: Path, archive: Path, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """`run({host: its output, or an error}, words…)`: the command with --bundle."""
    monkeypatch.delenv(QUIET, raising=False)
    monkeypatch.setattr(doctor, "time", SimpleNamespace(time=lambda: NOW))
    inventory = tmp_path / "inventory.py"
    inventory.touch()

    def runs(
        hosts: dict[str, Any],
        *words: str,
        facts: NodeFacts | None = None,
        bundle: Path = archive,
        reads: Any = read,
    ) -> Result:
        def connect(connector: FakeConnector) -> None:
            if hosts[connector.host.name.removeprefix("@fake/")] is None:
                raise ConnectError("no route")

        def execute(connector: FakeConnector, command: Any, **how: Any) -> Any:
            commands.append(str(command))
            found = hosts[connector.host.name.removeprefix("@fake/")]
            if isinstance(found, BaseException):
                raise found
            lines = [OutputLine("stdout", line) for line in found]
            return found[-1:] == printed()[-1:], CommandOutput(lines)

        every: Any = [(f"@fake/{name}", {}) for name in hosts]
        made = Inventory((every, {}), {}, gpu_nodes=(every, QUICK))
        monkeypatch.setattr(gather, "_load", lambda *about: made)
        monkeypatch.setattr(diagnosis, "read_hosts_and_clusters", reads)
        monkeypatch.setattr(FakeConnector, "connect", connect)
        monkeypatch.setattr(FakeConnector, "run_shell_command", execute)
        monkeypatch.setattr(host_facts, "read_facts", lambda *a, **b: facts or machine())
        command = ["doctor", str(inventory), "--bundle", str(bundle), *words]
        return CliRunner().invoke(main, command)

    with ctx_state.use(None), ctx_inventory.use(None):
        yield runs


def leftovers(archive: Path) -> list[str]:
    return [each.name for each in archive.parent.iterdir()]


def test_files_of_all_hosts_with_their_checksums(run: Run, archive: Path) -> None:
    done = run({"one": printed(LOG), "two": printed(LOG)}, facts=with_files(a="text\n"))
    assert done.exit_code == 0, done.output
    assert archive.stat().st_mode & 0o777 == 0o600
    found = unpacked(archive)
    for host in ("one", "two"):
        assert found[f"hosts/@fake/{host}/logs/docker.service.log"] == "a line\n"
        assert found[f"hosts/@fake/{host}/files/etc/a"] == "text\n"
    assert '"verdict": "PASS"' in found["doctor.json"]
    manifest = found.pop("MANIFEST.txt")
    for path, text in found.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert f"{digest}  {len(text.encode()):>9}  {path}\n" in manifest
    assert "command of logs/docker.service.log" in manifest
    assert "never held" in manifest


def test_no_secret_and_no_control_character(run: Run, archive: Path) -> None:
    unknown = "of-another-registry"
    log = item("logs/x.log", f"token {SECRET}\nmore \x1b]0;{SECRET}\x07 \u202e\n")
    facts = with_files(**{"x.toml": f'[auth]\npassword = "{unknown}"\nurl = "http://{SECRET}@h"\n'})
    login = {"/etc/apt/auth.conf.d/gpufleet-a.conf": ManagedFile("x", f"login {unknown}")}
    run({"one": printed(log)}, facts=replace(facts, files={**facts.files, **login}))
    found = unpacked(archive)
    text = "".join(found.values())
    assert SECRET not in text
    assert unknown not in text
    assert not [letter for letter in text if letter != "\n" and not letter.isprintable()]
    assert found["hosts/@fake/one/logs/x.log"] == "token ***\nmore \\x1b]0;***\\x07 \\u202e\n"


def test_output_beyond_a_limit_and_a_command_that_fails_are_noted(run: Run, archive: Path) -> None:
    long = item("long.txt", "x" * 50, most=50, status="")
    late = item("late.txt", "begun\n", status="\nexit 124\n")
    hung = item("hung.txt", "", status="")
    wrong = item("wrong.txt", "no such option\n", status="\nexit 2\n")
    none = "none\tnvidia-smi.txt\tthe module nvidia is not loaded"
    run({"one": printed(long, late, hung, wrong, none)})
    found = unpacked(archive)
    assert found["hosts/@fake/one/late.txt"] == "begun\n"
    manifest = found["MANIFEST.txt"]
    assert "command of long.txt (cut to 50 bytes)" in manifest
    assert "command of late.txt (not done after 20 s)" in manifest
    assert "command of wrong.txt (exit status 2)" in manifest
    missing = manifest.partition("Not collected\n")[2].splitlines()
    assert "hosts/@fake/one/hung.txt: not done after 20 s" in missing
    assert "hosts/@fake/one/nvidia-smi.txt: the module nvidia is not loaded" in missing


def test_more_than_a_host_may_send_is_not_unpacked(
    run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.evidence.parse.MAX_HOST_BYTES", 1000)
    run({"one": printed(item("bomb.txt", bytes(1 << 20)), LOG, *[item("x", "x" * 300)] * 4, LOG)})
    found = unpacked(archive)
    assert "hosts/@fake/one/logs/docker.service.log" in found
    assert "hosts/@fake/one/bomb.txt" not in found
    assert {"hosts/@fake/one/x", "hosts/@fake/one/x~2", "hosts/@fake/one/x~3"} <= {*found}
    assert "hosts/@fake/one/x~4" not in found
    assert (
        "hosts/@fake/one/bomb.txt: its output was cut off on the way, or is too large"
        in found["MANIFEST.txt"]
    )


@pytest.mark.parametrize("lost", [printed(LOG, item("b.txt", "b")[:-9], complete=False),
                                  printed(LOG, complete=False)])  # fmt: skip
def test_a_host_that_is_lost_keeps_what_it_sent(run: Run, archive: Path, lost: list[str]) -> None:
    done = run({"one": lost, "two": printed(LOG)})
    assert (done.exit_code, done.stderr.count("GF260 ")) == (1, 1), "its verdict is PASS"
    found = unpacked(archive)
    assert found["hosts/@fake/one/logs/docker.service.log"] == "a line\n"
    assert found["hosts/@fake/two/logs/docker.service.log"] == "a line\n"
    assert "hosts/@fake/one/b.txt" not in found
    assert "\nhosts/@fake/one: GF502 " in found["MANIFEST.txt"]


def test_hosts_without_an_answer_are_listed_and_others_go_on(run: Run, archive: Path) -> None:
    done = run({"gone": None, "cut": SSHException("reset"), "two": printed(LOG)})
    assert done.exit_code == 2
    found = unpacked(archive)
    assert found["hosts/@fake/two/logs/docker.service.log"] == "a line\n"
    missing = found["MANIFEST.txt"].partition("Not collected\n")[2]
    assert "hosts/@fake/gone: GF005 " in missing
    assert "hosts/@fake/cut: GF504 " in missing
    assert "hosts/@fake/two" not in missing


def test_nothing_collected_is_a_failure_although_all_pass(run: Run, archive: Path) -> None:
    bare = replace(machine(), files={})
    done = run({"one": SSHException("reset")}, "--check", "host.clock", facts=bare)
    assert (done.exit_code, done.stderr.count("GF260 ")) == (1, 1)
    assert set(unpacked(archive)) == {"MANIFEST.txt", "doctor.json"}


def test_names_of_a_host_lead_nowhere_else(run: Run, archive: Path) -> None:
    names = ("../../../etc/cron.d/x", "/etc/passwd", "a\x1b[2Jb", "x/" * 500, "same", "same")
    run({"one": printed(*(item(name, "text") for name in names))})
    found = unpacked(archive)
    mine = {path for path in found if path.startswith("hosts/")}
    folder = "hosts/@fake/one"
    assert {f"{folder}/etc/cron.d/x", f"{folder}/etc/passwd", f"{folder}/same~2"} <= mine
    assert not [path for path in found if ".." in path or not path.isprintable() or len(path) > 999]


@pytest.mark.parametrize("room", [0, 20_000, 10**9])
def test_a_full_disk_leaves_the_verdict_and_no_archive(
    run: Run, archive: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has this room for the archive without a name, and none for that with a name."""

    def fail(*about: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    class Spool(io.BytesIO):
        def write(self, data: Any) -> int:
            if len(self.getvalue()) + len(data) > room:
                fail()
            return super().write(data)

    monkeypatch.setattr(writing, "tempfile", SimpleNamespace(TemporaryFile=lambda dir: Spool()))
    monkeypatch.setattr(os, "replace", fail)
    noise = "".join(hashlib.sha256(bytes([n % 251, n // 251])).hexdigest() for n in range(5000))
    done = run({"one": printed(item("noise.txt", noise, most=10**6)), "two": printed(LOG)})
    assert done.exit_code == 1
    assert "GF002 " in done.stderr
    assert "No space left" in done.stderr
    assert "2 hosts" in done.stdout
    assert leftovers(archive) == []


@pytest.mark.parametrize("place", [(evidence, "_collect_clusters"), (os, "replace")])
def test_an_interrupt_leaves_no_archive(
    run: Run, archive: Path, place: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*about: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(*place, interrupted)
    assert run({"one": printed(LOG)}).exit_code == 130
    assert leftovers(archive) == []


def test_a_cluster_that_is_not_read_is_listed(
    run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Target("lab", ("gpu_cluster",), {"cluster_kubeconfig": "/none/kubeconfig"})

    def read_lab(inventory: str, limit: Sequence[str], **how: Any) -> Any:
        return read(inventory, limit, **how)[0], [lab]

    monkeypatch.setattr(diagnosis, "read_clusters", lambda *about: {})
    done = run({"one": printed(LOG)}, reads=read_lab)
    assert done.exit_code == 2, "the cluster is UNKNOWN"
    found = unpacked(archive)
    assert "hosts/@fake/one/logs/docker.service.log" in found
    assert "\nclusters/lab: GF" in found["MANIFEST.txt"]


def test_the_report_of_nvidia_runs_only_on_request(
    run: Run, archive: Path, commands: list[str]
) -> None:
    run({"one": printed(LOG)})
    (usual,) = commands
    commands.clear()
    run({"one": printed(LOG)}, "--bug-report", bundle=archive.with_name("other.tar.gz"))
    (asked,) = commands
    assert usual.replace("gpufleet-collect no", "gpufleet-collect yes") == asked != usual


def test_an_older_file_is_never_replaced(run: Run, archive: Path) -> None:
    archive.write_bytes(b"\x1f\x8b evidence of an earlier day")
    done = run({"one": printed(LOG)})
    assert (done.exit_code, done.stdout) == (2, "")
    assert archive.read_bytes() == b"\x1f\x8b evidence of an earlier day"


@pytest.mark.parametrize("words", [["--for", "prolog"], ["--bundle", "/proc/none/x.tar.gz"]])
def test_wrong_usage_collects_nothing(
    run: Run, archive: Path, commands: list[str], words: Sequence[str]
) -> None:
    done = run({"one": printed(LOG)}, *words)
    assert (done.exit_code, done.stdout, commands) == (2, "", [])
    assert leftovers(archive) == []


def test_a_report_needs_an_archive() -> None:
    assert CliRunner().invoke(main, ["doctor", "inv.py", "--bug-report"]).exit_code == 2
