"""The floor: what any tool on this SSH library must spend. One connection, one command per host.

Runs as a process of its own, so that its imports count as they do for pyinfra. It reads one JSON
object on standard input: `command`, and `hosts`, each with `address`, `user`, `key`, `known_hosts`.
It shares pyinfra's means (paramiko, gevent, all hosts at once, Nagle's algorithm off, strict host
keys) and does nothing with the output but read it.
"""

from gevent import monkey

monkey.patch_all()

# What follows must see the patched modules, as it does within pyinfra.
import json  # noqa: E402
import shlex  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
from typing import Any  # noqa: E402

import paramiko  # noqa: E402
from gevent import joinall, spawn  # noqa: E402


def nodelay(sock: Any, **options: Any) -> paramiko.Transport:
    """A transport whose small packets leave at once."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return paramiko.Transport(sock, **options)


def ask(host: dict[str, str], command: str) -> int:
    """Length of the answer in bytes; ends the process where the host gives none."""
    client = paramiko.SSHClient()
    client.load_host_keys(host["known_hosts"])
    client.connect(
        host["address"],
        username=host["user"],
        key_filename=host["key"],
        look_for_keys=False,
        allow_agent=False,
        transport_factory=nodelay,
    )
    _, out, _ = client.exec_command(command)
    answer = out.read()
    status = out.channel.recv_exit_status()
    client.close()
    if status or not answer:
        raise SystemExit(f"{host['address']} answered with status {status}")
    return len(answer)


def main() -> None:
    """Ask every host at the same time and say how many bytes arrived."""
    job = json.load(sys.stdin)
    command = f"sh -c {shlex.quote(job['command'])}"
    hosts = job["hosts"]
    asked = [
        spawn(ask, host, command if host["user"] == "root" else f"sudo -H -n {command}")
        for host in hosts
    ]
    joinall(asked, raise_error=True)
    print(f"{len(asked)} hosts, {sum(task.value for task in asked)} bytes")


if __name__ == "__main__":
    main()
