"""The lower bound for any tool on this SSH library: one connection and one command per host.

It runs as a separate process, so that its imports count as pyinfra's do. It reads one JSON object
from standard input: `command`, and `hosts`, each with `address`, `user`, `key`, `known_hosts`. Like
pyinfra, it uses paramiko and gevent, connects to all hosts at once, turns Nagle's algorithm off and
checks host keys strictly. It only reads the output.
"""

from gevent import monkey

monkey.patch_all()

# These imports must see the patched modules, as they do in pyinfra.
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
    """The length of the answer in bytes. Exits if the host does not answer."""
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
