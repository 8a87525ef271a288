"""One SSH connection per host. Each has an ssh_config and a control socket for one run."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from pathlib import Path
from typing import Any

import testinfra
import testinfra.host

from gpufleet.core.process import Process
from gpufleet.core.secrets import take_sudo_password
from gpufleet.verify.inventory import Target
from gpufleet.verify.probe import HostProbe, Unusable, parse_become

# Data key of pyinfra's SSH connector -> ssh_config option.
CONNECTION_OPTIONS = {
    "ssh_port": "Port",
    "ssh_user": "User",
    "ssh_key": "IdentityFile",
    "ssh_known_hosts_file": "UserKnownHostsFile",
}
PATHS = ("ssh_key", "ssh_known_hosts_file")
# Off, as pyinfra ignores them: options for a person at a terminal. A forwarded port may be in use,
# and ssh runs no other command beside RemoteCommand.
OF_SESSIONS = (
    "ClearAllForwardings yes", "PermitLocalCommand no", "RemoteCommand none", "RequestTTY no",
)  # fmt: skip
OVER_SSH = ("@ssh", "@vagrant")  # pyinfra's connectors; the latter gives ssh_hostname
# pyinfra's connectors without SSH -> testinfra's.
CONTAINERS = {"@docker": "docker", "@podman": "podman"}
SECRETS = ("ssh_password", "ssh_key_password")
KEYS = ("id_rsa", "id_ecdsa", "id_ed25519")  # that paramiko looks for
CONNECT_TIMEOUT = 10  # seconds
PERSIST = 60  # seconds that a connection stays open after an interrupted run


def _quoted(value: Any) -> str:
    text = str(value)
    if any(character in text for character in '"\n\r'):
        raise Unusable(f"{text!r} cannot be written into an ssh_config")
    return f'"{text}"'


def _path(value: Any) -> str:
    """A path as pyinfra finds it: relative to the working directory, with ~ as $HOME. ssh uses the
    home folder of the user database, and includes files from ~/.ssh."""
    return os.path.abspath(os.path.expanduser(str(value)))


def ssh_name(target: Target) -> str:
    """The host's name on ssh's command line: its address if that is a plain word.

    pyinfra looks up the same word in the user's ssh_config.
    """
    address = str(target.data.get("ssh_hostname") or target.name.removeprefix("@ssh/"))
    return address if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", address) else "host"


def ssh_config(target: Target, socket: Path) -> str:
    """An ssh_config for this one host, with quoted values. Raises Unusable."""
    for key in SECRETS:
        if target.data.get(key):
            raise Unusable(f"{key} is set, and the checks log in by key or agent only")
    name = ssh_name(target)
    lines = [f"Host {name}"]  # not for the bastion: its options are in the user's own file
    if name == "host":
        lines.append(f"  HostName {_quoted(target.data.get('ssh_hostname') or target.name)}")
    lines += [
        f"  {option} {_quoted(_path(value) if key in PATHS else value)}"
        for key, option in CONNECTION_OPTIONS.items()
        if (value := target.data.get(key)) is not None
    ]
    if target.data.get("ssh_key"):
        lines.append("  IdentitiesOnly yes")
    own = target.data.get("ssh_config_file")
    strict = target.data.get("ssh_strict_host_key_checking", "accept-new")
    lines += [
        f"  StrictHostKeyChecking {_quoted(strict)}",
        f"  ControlPath {_quoted(socket)}",
        *(f"  {line}" for line in OF_SESSIONS),
        "  LogLevel ERROR",
        "  ServerAliveInterval 5",
        "  ServerAliveCountMax 4",
        # ssh uses the first value of an option: the inventory's, then the user's own file's.
        "Host *",
        "  BatchMode yes",
        f"  Include {_quoted(_path(own or '~/.ssh/config'))}",
        *(f"  {line}" for line in _defaults(target)),
    ]
    return "\n".join(lines) + "\n"


def _defaults(target: Target) -> list[str]:
    """pyinfra's default files where HOME is not the user's home, in which ssh looks for its own.

    Source: https://github.com/actions/runner/issues/863 (jobs in containers; read 2026-11-28)
    """
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # ssh does not run for a user without a name
        return []
    if home == os.path.expanduser("~"):
        return []
    keys = [] if target.data.get("ssh_key") else KEYS  # ssh names those that do not exist
    there = [path for key in keys if Path(path := _path(f"~/.ssh/{key}")).exists()]
    known = f"UserKnownHostsFile {_quoted(_path('~/.ssh/known_hosts'))}"
    return [known, *(f"IdentityFile {_quoted(path)}" for path in there)]


class Connections:
    """The connections of one run, in a folder that only this user can enter."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gfv-")
        self._opened: list[tuple[Path, str]] = []
        self._sudo_password = take_sudo_password()

    def open(self, target: Target) -> HostProbe:
        """A probe for this target, which connects on its first command. Raises Unusable."""
        own = {key: value for key, value in target.data.items() if value}
        root = parse_become({"_sudo_password": self._sudo_password, **own})
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
        if connector.startswith("@") and connector not in OVER_SSH:
            raise Unusable(f"the checks cannot use pyinfra's connector {connector}")
        # The path of a control socket has at most about 100 bytes, so names are short.
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
        """Close all open connections and remove the folder."""
        for config, name in self._opened:
            if config.with_suffix(".s").exists():
                Process(["ssh", "-F", str(config), "-O", "exit", name], timeout=PERSIST).wait()
        self._folder.cleanup()
