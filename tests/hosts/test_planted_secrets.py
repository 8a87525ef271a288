"""Whole runs with secrets of the inventory: nothing that other users can read shows one."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from checking import GPUFLEET
from deploying import ROOT, Outcome, deploy_command, run_deploy
from planted import add_user, leaks, plant

from gpufleet_sandbox import Host
from gpufleet_sandbox.paths import cache_dir
from tests.hosts.conftest import HostFactory
from tests.planting.marks import Marks, shown
from tests.planting.watching import files_that_show, home_apart, watching

pytestmark = pytest.mark.hosts

VERBOSE = ["-vvv", "--diff"]


@pytest.fixture
def guarded(mirror_host: Host) -> Iterator[str]:
    """The password that the mirror requires for NVIDIA's repositories."""
    password = Marks("mirror")["login"]
    faults = mirror_host.scenario / "faults.json"
    wanted = {"mode": "login", "path": "^/compute/", "login": f"me:{password}"}
    faults.write_text(json.dumps(wanted))
    yield password
    faults.unlink()


class Planted:
    """Hosts with secrets, and monitored runs on them."""

    def __init__(
        self, hosts: list[Host], folder: Path, password: str, patch: pytest.MonkeyPatch
    ) -> None:
        patch.setenv("XDG_CACHE_HOME", str(cache_dir().parent))  # the sandbox's folder
        self.home = home_apart(folder, patch)
        self.hosts, self.folder = hosts, folder
        self.marks = [Marks(host.name) for host in hosts]
        self.per_host: dict[str, dict[str, Any]] = {}
        for host, marks in zip(hosts, self.marks, strict=True):
            plant(host, marks)
            own = folder / host.name
            own.mkdir()
            self.per_host[host.name] = add_user(host, marks, own)
        logins = folder / "logins"
        logins.write_text(f"machine mirror login me password {password}\n")
        logins.chmod(0o600)
        site = Marks("site")
        self.data: dict[str, Any] = {
            "driver_repo_logins": str(logins),
            "site_api_key": site["api key"],
            "site_webhook_url": f"https://hooks.example/{site['webhook']}",
            "site": {"env": [{"name": "DB_PASSWORD", "value": site["variable"]}]},
        }
        self.patterns = {**Marks("mirror", {"login": password}).patterns, **site.patterns}
        for marks in self.marks:
            self.patterns |= marks.patterns
        self.since = time.time()

    def run(self, deploy: str = "gpu_node", *options: str, **data: Any) -> Outcome:
        """Run a deploy: no secret may be in its output, report, files or command lines."""
        with self.monitored() as texts:
            done = run_deploy(
                deploy,
                self.hosts,
                per_host=self.per_host,
                options=options,
                **{**self.data, **data},
            )
            texts += [done.output, json.dumps(done.report)]
        return done

    def command(self, *words: str | Path) -> str:
        """Output of `gpufleet WORDS`, which must show no secret either."""
        with self.monitored() as texts:
            done = subprocess.run(
                [GPUFLEET, *words], cwd=ROOT, capture_output=True, text=True, timeout=900,
                check=False,
            )  # fmt: skip
            texts += [done.stdout, done.stderr]
        return done.stdout + done.stderr

    @contextmanager
    def monitored(self) -> Iterator[list[str]]:
        """Fails if a text of the list, a file or a command line of that time shows a secret."""
        began, texts = time.time(), list[str]()
        with watching(self.patterns) as seen:
            yield texts
        assert seen.secrets == [], seen.secrets
        found = shown(self.patterns, texts)
        assert found == [], f"{found} in {texts}"
        assert files_that_show(self.patterns, self.home, began) == []

    def inventory(self, **data: Any) -> Path:
        """The inventory of the same hosts."""
        folder = self.folder / "inventory"
        folder.mkdir(exist_ok=True)
        more = {**self.data, **data}
        return Path(deploy_command("gpu_node", self.hosts, folder, self.per_host, more)[-2])

    def assert_no_leaks(self) -> None:
        for host in self.hosts:
            assert leaks(host, self.patterns, self.since) == [], host.name


@pytest.mark.claim(
    "Secrets of the inventory are in nothing that a run prints, writes or starts, with `-vvv` too.",
    level=3,
)
def test_an_installation_shows_no_secret(
    bare_host: HostFactory, guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Planted([bare_host("ubuntu2204")], tmp_path, guarded, monkeypatch)
    done = planted.run("gpu_node", *VERBOSE)
    assert done.returncode == 0, done.output
    assert "nvidia" in done.output
    planted.assert_no_leaks()


@pytest.mark.extended
@pytest.mark.parametrize("options", [[], VERBOSE], ids=["plain", "vvv"])
def test_no_secret_is_shown_from_installation_to_removal(
    bare_host: HostFactory,
    guarded: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    hosts = [bare_host("ubuntu2204"), bare_host("el7")]
    planted = Planted(hosts, tmp_path, guarded, monkeypatch)
    done = planted.run("gpu_node", *options)
    assert done.returncode == 0, done.output
    changed = planted.run("gpu_node", *options, "--diff", toolkit_default_runtime=True)
    assert changed.returncode == 0, changed.output
    assert "daemon.json: it changes, and is not shown" in changed.output
    failing_runs(planted, options)
    doctor_and_verify(planted)
    removed = planted.run("remove", *options)
    assert removed.returncode == 0, removed.output
    planted.assert_no_leaks()


def failing_runs(planted: Planted, options: list[str]) -> None:
    """Runs that fail: a wrong login, settings with secrets in them."""
    wrong = Path(planted.data["driver_repo_logins"]).with_name("wrong")
    own = Marks("wrong")
    wrong.write_text(f"machine mirror login me password {own['login']}\n")
    wrong.chmod(0o600)
    planted.patterns |= own.patterns
    refused = planted.run("gpu_node", *options, driver_repo_logins=str(wrong))
    assert refused.returncode == 1, refused.output
    address = f"https://me:{own['login in an address']}@mirror/compute"
    query = f"https://mirror/compute?X-Amz-Signature={own['signature in an address']}"
    planted.patterns |= own.patterns
    for url in (address, query):
        rejected = planted.run("gpu_node", *options, driver_repo_url=url, toolkit_repo_url=url)
        assert rejected.returncode != 0, rejected.output


def doctor_and_verify(planted: Planted) -> None:
    inventory = planted.inventory()
    assert "gpus" in planted.command("doctor", inventory, "--json")
    results = [planted.home / "found.json", planted.home / "found.xml"]
    planted.command("verify", inventory, "--json", results[0], "--junit", results[1])
    planted.per_host = {host.name: {} for host in planted.hosts}  # verify supports no passphrase
    planted.command("verify", planted.inventory(), "--json", results[0], "--junit", results[1])
    assert all(path.exists() for path in results)
