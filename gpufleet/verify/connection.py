"""One SSH connection per host: an ssh_config with a control socket for each, made for one run."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import testinfra
import testinfra.host

from gpufleet.core.process import Process
from gpufleet.core.secrets import take_sudo_password
from gpufleet.verify.become import Unusable, become
from gpufleet.verify.inventory import Target
from gpufleet.verify.probe import HostProbe

# Data key of pyinfra's SSH connector -> option of ssh_config.
OPTIONS = {
    "ssh_port": "Port",
    "ssh_user": "User",
    "ssh_key": "IdentityFile",
    "ssh_known_hosts_file": "UserKnownHostsFile",
}
PATHS = ("ssh_key", "ssh_known_hosts_file")
# pyinfra's connectors without SSH -> testinfra's.
CONTAINERS = {"@docker": "docker", "@podman": "podman"}
SECRETS = ("ssh_password", "ssh_key_password")
CONNECT_TIMEOUT = 10  # seconds
PERSIST = 60  # seconds that a connection outlives an interrupted run


def _quoted(value: Any) -> str:
    text = str(value)
    if any(character in text for character in '"\n\r'):
        raise Unusable(f"{text!r} cannot be written into an ssh_config")
    return f'"{text}"'


def _path(value: Any) -> str:
    """As pyinfra finds it: ~ is $HOME and the rest begins in the working directory. ssh takes the
    home of the user database, and includes files from ~/.ssh."""
    return os.path.abspath(os.path.expanduser(str(value)))


def ssh_name(target: Target) -> str:
    """What to call the host on ssh's command line: its address where that is a plain word.

    pyinfra looks a host up in the user's ssh_config by the same word.
    """
    address = str(target.data.get("ssh_hostname") or target.name.removeprefix("@ssh/"))
    return address if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", address) else "host"


def ssh_config(target: Target, socket: Path) -> str:
    """An ssh_config for this one host; values are quoted. Raises Unusable."""
    for key in SECRETS:
        if target.data.get(key):
            raise Unusable(f"{key} is set, and the checks log in by key or agent only")
    name = ssh_name(target)
    lines = [f"Host {name}"]  # and no bastion: it has what the user's own file says of it
    if name == "host":
        lines.append(f"  HostName {_quoted(target.data.get('ssh_hostname') or target.name)}")
    lines += [
        f"  {option} {_quoted(_path(value) if key in PATHS else value)}"
        for key, option in OPTIONS.items()
        if (value := target.data.get(key)) is not None
    ]
    if target.data.get("ssh_key"):
        lines.append("  IdentitiesOnly yes")
    own = target.data.get("ssh_config_file")
    strict = target.data.get("ssh_strict_host_key_checking", "accept-new")
    lines += [
        f"  StrictHostKeyChecking {_quoted(strict)}",
        f"  ControlPath {_quoted(socket)}",
        "  LogLevel ERROR",
        "  ServerAliveInterval 5",
        "  ServerAliveCountMax 4",
        # The first value of an option wins: what the inventory says, then the user's own file.
        "Host *",
        "  BatchMode yes",
        f"  Include {_quoted(_path(own or '~/.ssh/config'))}",
    ]
    return "\n".join(lines) + "\n"


class Connections:
    """The connections of one run, in a folder that only this user can enter."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gfv-")
        self._opened: list[tuple[Path, str]] = []
        self._sudo_password = take_sudo_password()

    def open(self, target: Target) -> HostProbe:
        """A probe for this target; connects on its first command. Raises Unusable."""
        own = {key: value for key, value in target.data.items() if value}
        root = become({"_sudo_password": self._sudo_password, **own})
        host = self._host(target)
        if root.password and target.name.partition("/")[0] in CONTAINERS:
            raise Unusable("_sudo_password is set, and a container's commands get no input")
        return HostProbe(host, root, target.name)

    def _host(self, target: Target) -> testinfra.host.Host:
        connector, _, name = target.name.partition("/")
        if target.name == "@local":
            return testinfra.get_host("local://")
        if connector in CONTAINERS:
            return testinfra.get_host(f"{CONTAINERS[connector]}://{name}")
        if connector.startswith("@") and connector != "@ssh":
            raise Unusable(f"the checks cannot use pyinfra's connector {connector}")
        # Control sockets have a path limit of about 100 bytes: short names in a short folder.
        config = Path(self._folder.name) / f"{len(self._opened)}.conf"
        config.write_text(ssh_config(target, config.with_suffix(".s")))
        self._opened.append((config, ssh_name(target)))
        return testinfra.get_host(
            f"ssh://{ssh_name(target)}",
            ssh_config=str(config),
            timeout=CONNECT_TIMEOUT,
            controlpersist=PERSIST,
        )

    def close(self) -> None:
        """End every connection that is still open, then remove the folder."""
        for config, name in self._opened:
            if config.with_suffix(".s").exists():
                Process(["ssh", "-F", str(config), "-O", "exit", name], timeout=PERSIST).wait()
        self._folder.cleanup()
