"""Logins of package mirrors: in separate files or files of mode 0600, and nowhere else."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import Keyring, ManagedFile, NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, describe_plan, plan_node
from gpufleet.node.settings import NodeSettings, load_node_settings
from gpufleet.packages.archives import ARCHIVES_FILE
from gpufleet.packages.logins import Logins, RepositoryLogin
from gpufleet.packages.operations import logins
from gpufleet.packages.operations.logins import node_logins
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.hosts import bare_host
from tests.unit.packages.archives_setup import STOCK, el7

LOGIN = RepositoryLogin("me", "s3cret")
LOGINS = {
    "driver": Logins({"mirror.example:8443": LOGIN, "mirror.example": RepositoryLogin("no", "no")}),
    "toolkit": Logins({"tools.example": LOGIN}),
}
DATA = {
    "driver_repo_url": "https://mirror.example:8443/cuda",
    "driver_repo_key_fingerprint": "A" * 40,
    "node_archives": True,
    "node_archives_url": "http://mirror.example:8443/archives",
    "toolkit_repo_url": "http://tools.example/toolkit",
}


def settings(**data: object) -> NodeSettings:
    found, problems = load_node_settings({**DATA, **data})
    assert found, problems
    return found


def plan(facts: NodeFacts, logins: dict[str, Logins] = LOGINS) -> NodePlan:
    return plan_node(settings(), facts, load_catalog(), facts.clock, logins)


def repositories(found: NodePlan) -> tuple[RepositoryPlan, RepositoryPlan]:
    assert found.of(DRIVER)
    assert found.of(TOOLKIT)
    return found.of(DRIVER).repository, found.of(TOOLKIT).repository


def test_apt_gets_a_file_of_its_own_that_only_root_can_read() -> None:
    driver, toolkit = repositories(plan(bare_host()))
    assert driver.login
    assert toolkit.login
    assert driver.login.mode == toolkit.login.mode == 0o600
    assert driver.login.path.startswith("/etc/apt/auth.conf.d/gpufleet-")
    start = "machine mirror.example:8443/cuda/ubuntu2204/x86_64/ login me password s3cret"
    assert str(driver.login.content).strip() == start, "without a scheme: https alone"
    assert str(toolkit.login.content).startswith("machine http://tools.example/toolkit/")
    for found in (driver, toolkit):
        assert found.source
        assert "s3cret" not in str(found.source.content)


def test_yum_gets_it_in_a_source_that_only_root_can_read() -> None:
    found = plan(el7(CentOS_Base=STOCK))
    archives = [file for file in found.archives.files if file.path == ARCHIVES_FILE]
    driver, toolkit = repositories(found)
    for source in (driver.source, toolkit.source, *archives):
        assert source
        assert source.mode == 0o600
        assert "username=me\npassword=s3cret\n" in str(source.content)
    assert len(archives) == 1
    assert {key.netrc for key in found.archives.keys} == {
        "machine mirror.example login me password s3cret\n"
    }


@pytest.mark.parametrize("facts", [bare_host(), el7(CentOS_Base=STOCK)])
def test_nothing_that_is_shown_has_the_password(facts: NodeFacts) -> None:
    found = plan(facts)
    said = " ".join(finding.message + finding.remedy for finding in found.all_findings)
    assert "s3cret" not in f"{describe_plan(found)}{said}{LOGINS}{LOGIN}"


def test_a_new_password_is_written_and_the_same_is_not() -> None:
    facts = bare_host()
    driver, _ = repositories(plan(facts))
    assert driver.repository
    assert driver.source
    assert driver.login
    there = {
        file.path: ManagedFile(file.path, str(file.content), file.mode)
        for file in (driver.source, driver.login)
    }
    done = replace(facts, files=there, keyrings=(Keyring(driver.repository.keyring, ("A" * 40,)),))
    assert repositories(plan(done))[0].needed is False
    other = {"driver": Logins({"mirror.example": RepositoryLogin("me", "new")})}
    assert repositories(plan(done, other))[0].needed is True


def write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_logins_come_from_a_file(tmp_path: Path) -> None:
    text = "machine a login me password s3cret\nmachine b:80 login you password x\n"
    wanted = settings(driver_repo_logins=write(tmp_path / "netrc", text))
    files = {"driver": wanted.of(DRIVER).repo_logins, "toolkit": wanted.of(TOOLKIT).repo_logins}
    named = {role: (f"{role}_repo_logins", file) for role, file in files.items()}
    logins, problems = node_logins(named)
    assert problems == []
    assert logins["driver"].find("https://a/x") == LOGIN
    assert logins["driver"].find("http://b:80/") == RepositoryLogin("you", "x")
    assert logins["toolkit"].find("https://a/x") is None


@pytest.mark.parametrize(
    ("mode", "owner", "user", "exposed"),
    [
        (0o440, 0, 1000, False),
        (0o444, 0, 1000, True),
        (0o460, 0, 1000, True),
        (0o440, 0, 0, True),  # root's group is no pod's
        (0o640, 1000, 0, True),  # of another user, read with sudo
        (0o640, 1000, 1000, True),
    ],
)
def test_a_mounted_secret_may_be_read_by_its_group(
    monkeypatch: pytest.MonkeyPatch, mode: int, owner: int, user: int, exposed: bool
) -> None:
    """Kubernetes mounts Secrets as files of root."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    about = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))
    assert logins._is_exposed(about) is exposed


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("machine a login me password s3cret", 0o644, "other than its owner"),
        ('machine a login me password "s3 cret"', 0o600, "characters that apt or yum split at"),
        ("machine a login me password $s3cret", 0o600, "characters that apt or yum split at"),
        ("machine a s3cret", 0o600, "not a valid netrc file"),
        (None, 0o600, "No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, text: str | None, mode: int, reason: str
) -> None:
    path = tmp_path / "netrc"
    name = write(path, text, mode) if text is not None else str(path)
    _, (problem,) = node_logins({"toolkit": ("toolkit_repo_logins", name)})
    assert (problem.code, problem.blocks) == ("GF326", True)
    assert reason in problem.message
    assert "toolkit_repo_logins" in problem.message
    assert "s3" not in problem.message


def test_a_secret_that_all_can_read_is_not_in_place() -> None:
    secret = FileWrite("/etc/x", "password", 0o600)
    for mode, fine in ((0o600, True), (0o644, False), (0o640, False)):
        facts = replace(bare_host(), files={"/etc/x": ManagedFile("/etc/x", "password", mode)})
        assert secret.is_on(facts) is fine
