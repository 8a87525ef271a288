"""From the inventory's data to hosts and ssh options."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.verify.connection import Connections, ssh_config, ssh_name
from gpufleet.verify.inventory import (
    Target,
    load_targets,
    parse_targets,
    select_targets,
)
from gpufleet.verify.probe import Unusable, ssh_reason

SOCKET = Path("/tmp/gfv-x/0.s")


def target(name: str = "gpu-1", *groups: str, **data: Any) -> Target:
    return Target(name, groups, data)


def test_options_come_from_the_data_of_pyinfra() -> None:
    text = ssh_config(
        target(
            ssh_hostname="127.0.0.1",
            ssh_port=2201,
            ssh_user="root",
            ssh_key="/a key",
            ssh_known_hosts_file="/k",
            ssh_strict_host_key_checking="yes",
        ),
        SOCKET,
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[:6] == [
        "Host 127.0.0.1",
        'Port "2201"',
        'User "root"',
        'IdentityFile "/a key"',
        'UserKnownHostsFile "/k"',
        "IdentitiesOnly yes",
    ]
    assert {'StrictHostKeyChecking "yes"', f'ControlPath "{SOCKET}"', "BatchMode yes"} <= set(lines)


def test_options_for_a_person_at_a_terminal_are_off(tmp_path: Path) -> None:
    """A tmux as RemoteCommand, or a port that another session forwards."""
    own, config = tmp_path / "own", tmp_path / "config"
    person = ("RemoteCommand tmux new -A", "RequestTTY force", "LocalForward 8888 [::1]:8888")
    own.write_text("\n".join(("Host gpu-1", *person)))
    config.write_text(ssh_config(target(ssh_config_file=str(own)), SOCKET))
    words = ["ssh", "-G", "-F", str(config), "gpu-1"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "controlpath /tmp/gfv-x/0.s" in shown
    for option in ("remotecommand", "requesttty force", "localforward"):
        assert not [line for line in shown if line.startswith(option)]


def test_address_is_the_name_that_ssh_gets() -> None:
    assert ssh_name(target(ssh_hostname="10.0.0.1")) == "10.0.0.1"
    assert ssh_name(target("@ssh/gpu-1")) == "gpu-1"
    assert ssh_name(target("-oProxyCommand=x")) == "host"
    assert 'HostName "fe80::1"' in ssh_config(target(ssh_hostname="fe80::1"), SOCKET)


def test_paths_are_found_where_pyinfra_finds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", "/home/of-the-shell")
    monkeypatch.chdir(tmp_path)
    text = ssh_config(
        target(ssh_key="~/.ssh/key", ssh_known_hosts_file="~/known", ssh_config_file="config"),
        SOCKET,
    )
    lines = [line.strip() for line in text.splitlines()]
    assert 'IdentityFile "/home/of-the-shell/.ssh/key"' in lines
    assert 'UserKnownHostsFile "/home/of-the-shell/known"' in lines
    assert f'Include "{tmp_path}/config"' in lines


def test_users_own_ssh_config_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir
    monkeypatch.setenv("HOME", home)
    assert ssh_config(target(), SOCKET).rstrip().endswith(f'Include "{home}/.ssh/config"')
    text = ssh_config(target(ssh_config_file="/c"), SOCKET)
    assert text.rstrip().endswith('Include "/c"')


@pytest.mark.parametrize("own", ["", "/a key"])
def test_default_files_are_those_below_home(
    own: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """ssh takes the home of the user database; HOME may be another one, as in a container."""
    monkeypatch.setenv("HOME", str(home := tmp_path / "github/home"))
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_ed25519").touch()
    text = ssh_config(target(**({"ssh_key": own} if own else {})), SOCKET)
    after = [line.strip() for line in text.partition("Include")[2].splitlines()]
    assert after[:2] == [
        f'"{home}/.ssh/config"', f'UserKnownHostsFile "{home}/.ssh/known_hosts"',
    ]  # fmt: skip
    keys = [line for line in after if line.startswith("IdentityFile")]
    assert keys == ([] if own else [f'IdentityFile "{home}/.ssh/id_ed25519"'])


@pytest.mark.parametrize("data", [{"ssh_password": "hunter2"}, {"ssh_key_password": "hunter2"}])
def test_passwords_are_refused_and_not_shown(data: dict[str, str]) -> None:
    with pytest.raises(Unusable) as caught:
        ssh_config(target(**data), SOCKET)
    assert "hunter2" not in str(caught.value)


def test_value_with_a_line_break_is_refused() -> None:
    with pytest.raises(Unusable):
        ssh_config(target(ssh_user="root\nProxyCommand x"), SOCKET)


def test_a_vagrant_box_is_reached_by_ssh() -> None:
    connections = Connections()
    connections.open(target("@vagrant/default", ssh_hostname="127.0.0.1", ssh_port=2222))
    with pytest.raises(Unusable, match="@chroot"):
        connections.open(target("@chroot/mnt"))
    connections.close()


def test_targets_of_pyinfra() -> None:
    text = json.dumps([{"name": "a", "groups": ["gpu_nodes"], "data": {"_sudo": True}}])
    assert parse_targets(text) == [Target("a", ("gpu_nodes",), {"_sudo": True})]


FLEET = [target("a", "gpu_nodes"), target("b", "gpu_nodes", "canary"), target("login", "other")]


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ([], ["a", "b"]),
        (["login"], ["login"]),
        (["canary", "a"], ["a", "b"]),
        (["lo*"], ["login"]),
        (["other", "gpu_nodes"], ["a", "b", "login"]),
    ],
)
def test_limit(limits: list[str], names: list[str]) -> None:
    assert [t.name for t in select_targets(FLEET, limits, "x.py")] == names


def test_without_the_group_every_host_is_checked() -> None:
    assert [t.name for t in select_targets(FLEET[2:], [], "x.py")] == ["login"]


def test_unknown_limit_names_what_there_is() -> None:
    there = r"GF702 .* Hosts: a, b, login, @local\. Groups: gpu_nodes, canary, other\. "
    with pytest.raises(Stopped, match=there):
        select_targets([*FLEET, target("@local", "@local")], ["c"], "x.py")
    with pytest.raises(Stopped, match=r"Correct the name: did you mean canary\?$"):
        select_targets(FLEET, ["canaries"], "x.py")


def test_a_changed_host_key_is_two_lines_of_ssh() -> None:
    frame = "@" * 59
    text = f"""{frame}
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
{frame}
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Offending ED25519 key in /home/ops/.ssh/known_hosts:3
Host key for gpu-1 has changed and you have requested strict checking.
Host key verification failed."""
    where = "Offending ED25519 key in /home/ops/.ssh/known_hosts:3"
    assert ssh_reason(text) == f"{where} / Host key verification failed."
    assert ssh_reason("Host key verification failed.") == "Host key verification failed."


def test_inventory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Stopped, match=r"GF701 .*none\.py"):
        load_targets(str(tmp_path / "none.py"))


def test_inventory_that_prints_and_has_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.py").write_text('print("[2 hosts]\\n")\ngpu_nodes = ["a", "b"]\n')
    (tmp_path / "group_data").mkdir()
    objects = "class Vault: pass\nvault = Vault()\nnumbers = {1, 'a'}\nssh_user = 'ops'\n"
    (tmp_path / "group_data/all.py").write_text(objects)
    found = load_targets("fleet.py")
    assert [target.name for target in found] == ["a", "b"]
    data = {"Vault": "<type>", "vault": "<Vault>", "numbers": "<set>", "ssh_user": "ops"}
    assert found[0].data == data


def test_inventory_that_is_broken(tmp_path: Path) -> None:
    inventory = tmp_path / "broken.py"
    inventory.write_text("hosts = [1 / 0]\n")
    with pytest.raises(Stopped, match=r"GF701 .*division by zero"):
        load_targets(str(inventory))
