"""A mirror that requires a login: only files readable by root contain it, nothing shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from deploying import run_deploy
from driver_state import NEWEST, ONLY_DRIVER, assert_driver

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "A mirror's login is in files of root only, and in no output, report or command line.",
        level=3,
    ),
]

PASSWORD = "hunter2*71524"
PLACES = "/etc /root /tmp /var/tmp /var/lib/gpufleet /var/lib/apt /var/cache /run/user"


@pytest.fixture
def guarded(mirror_host: Host) -> Iterator[None]:
    """The mirror requires a login for NVIDIA's repositories."""
    faults = mirror_host.scenario / "faults.json"
    wanted = {"mode": "login", "path": "^/compute/", "login": f"me:{PASSWORD}"}
    faults.write_text(json.dumps(wanted))
    yield
    faults.unlink()


def command_lines() -> str:
    """Command lines of all processes on this machine, including its sandbox hosts."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            found.append(path.read_bytes())
    return b"".join(found).decode(errors="replace")


def test_a_login_reaches_only_the_mirror(
    bare_host: HostFactory, guarded: None, tmp_path: Path
) -> None:
    hosts = [bare_host("debian12"), bare_host("el7")]
    refused = run_deploy("gpu_node", hosts, **ONLY_DRIVER)
    assert refused.failures() == ["debian12", "el7"]
    assert "GF311" in refused.codes("debian12") & refused.codes("el7")
    logins = tmp_path / "logins"
    logins.write_text(f"machine mirror login me password {PASSWORD}\n")
    logins.chmod(0o600)
    seen: list[str] = []
    settings = {"driver_repo_logins": str(logins), **ONLY_DRIVER}
    done = run_deploy(
        "gpu_node",
        hosts,
        options=["--diff", "-vvv"],
        on_line=lambda line: seen.append(command_lines()) if "Starting op" in line else None,
        **settings,
    )
    assert done.returncode == 0, done.output[-3000:]
    assert PASSWORD not in done.output
    assert PASSWORD not in json.dumps(done.report)
    assert not [True for lines in seen if PASSWORD in lines]
    assert len(seen) > 5, "nothing was watched"
    for host, branch in zip(hosts, ("580", "550"), strict=True):
        assert_driver(host, NEWEST[branch])
        found = f"grep -rlF '{PASSWORD}' {PLACES} 2>/dev/null"
        files = host.run(found, check=False).stdout.split()
        assert len(files) >= 1
        for path in files:
            assert host.output(f"stat -c '%a %U' {path}") == "600 root", path
        assert host.run("ls /var/lib/gpufleet/incoming", check=False).stdout == ""
    again = run_deploy("gpu_node", hosts, **settings)
    assert again.changes() == {"debian12": 0, "el7": 0}, again.output
    logins.chmod(0o644)
    open_to_all = run_deploy("gpu_node", hosts[:1], **settings)
    assert "GF326" in open_to_all.codes("debian12")
