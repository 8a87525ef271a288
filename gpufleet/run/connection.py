"""Connects pyinfra to hosts."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from getpass import getpass, getuser
from typing import Any

import paramiko
import pyinfra
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from paramiko.ssh_exception import BadHostKeyException, NoValidConnectionsError
from pyinfra.api import Config, Host
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.connectors import ssh_util, util
from pyinfra.connectors.ssh import SSHConnector

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_field
from gpufleet.core.secrets import register_secret, register_secrets_of, take_sudo_password
from gpufleet.core.visible import one_line
from gpufleet.run.findings import HOST_KEY_CHANGED, HOST_KEY_UNKNOWN, UNREACHABLE

_connect, _connect_once = SSHConnector.connect, SSHConnector._connect
_from_line = HostKeyEntry.from_line
_offered_keys = paramiko.Transport.preferred_keys.fget  # type: ignore[attr-defined]
_WHY = "gpufleet_unreached"  # key in pyinfra's connector_data: a finding
_UNKNOWN_KEY = re.compile(r"\w+Policy: No host key for (?P<address>\S+) found in known_hosts")
_SILENCE = 1.0  # seconds between paramiko's checks for a keepalive or the end
_CONNECT_FAILED = 2  # sshd's code for a session too many: RFC 4254, 5.1
_PROMPTLY = 5.0  # seconds within which a working server sends its banner
_REFUSED, _AGAIN = 2.0, 0.05  # seconds to retry after a refusal, and between two tries
_NO_PASSPHRASE = (
    "the private key has a passphrase, and there is no terminal to prompt for it: set "
    "ssh_key_password from a vault, or load the key into ssh-agent and remove ssh_key"
)


class NoPassword(EOFError):
    """A password or passphrase is needed, and no terminal is available to ask for it."""


def read_password(prompt: str) -> str:
    """Ask on the terminal with getpass. Raises NoPassword if standard input is not a terminal:
    reading from an open pipe would wait forever."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise NoPassword("there is no terminal to ask on")
    try:
        password = getpass(prompt)
    except EOFError as error:
        raise NoPassword("no password was typed") from error
    register_secret(password)
    return password


def prepare_connections(config: Config | None) -> None:
    """Prepare a process before it connects. `config`: receives the password of
    --ask-sudo-password."""
    quiet_paramiko()
    name_user()
    stop_alone()
    password = take_sudo_password()
    if password and config is not None:
        config.SUDO_PASSWORD = password


def name_user() -> None:
    """Let the number of a user without a name be its name, as in a container: paramiko needs one
    for each host of an ssh_config with an IdentityFile.

    Source: https://github.com/paramiko/paramiko/issues/2279 (read 2026-11-29)
    """
    try:
        getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        os.environ["LOGNAME"] = str(os.getuid())


def stop_alone() -> None:
    """Let a failed connection stop only its own host, and record its cause for the report.

    pyinfra does so for network errors, but a key file that is missing or has another passphrase
    would end the run of all hosts. Callbacks are too late: pyinfra drops those registered before it
    has the inventory, and connects right after.
    """
    HostKeyEntry.from_line = staticmethod(_known_host)  # type: ignore[assignment, method-assign]
    paramiko.Transport.preferred_keys = property(_preferred_keys)  # type: ignore[assignment]
    if SSHConnector.connect is not _connect_or_say_why:
        SSHConnector.connect = _connect_or_say_why  # type: ignore[assignment, method-assign]
    for module in (ssh_util, util):  # for keys, for sudo
        module.getpass = read_password  # type: ignore[attr-defined]


def _known_host(line: str, number: int | None = None) -> HostKeyEntry | None:
    """Parse a line of known_hosts. Returns None for lines that paramiko cannot read, such as
    @cert-authority: for them it raises, which hides all lines after them.

    Source: https://github.com/pyinfra-dev/pyinfra/issues/1944 (read 2026-11-28)
    """
    try:
        return None if line.startswith("@") else _from_line(line, number)
    except InvalidHostKey:
        return None


def _preferred_keys(transport: paramiko.Transport) -> tuple[str, ...]:
    """The types of host keys to ask for. A known RSA key is asked for by its SHA-2 signatures:
    servers no longer offer ssh-rsa, and with a key of another type the host's looks changed.

    Source: https://github.com/paramiko/paramiko/issues/2411 (read 2026-11-28)
    """
    keys = tuple(_offered_keys(transport))
    first = tuple(key for key in keys if re.fullmatch(r"rsa-sha2-\d+", key))
    return tuple(dict.fromkeys((*first, *keys))) if keys[:1] == ("ssh-rsa",) else keys


def explain_unreached(host: Host) -> Finding:
    """Why the last attempt to connect to a host failed."""
    found = host.connector_data.get(_WHY)
    if isinstance(found, Finding):
        return found
    return UNREACHABLE(host=host.name, cause="see pyinfra's output above")


def hang_up(hosts: Iterable[Host]) -> None:
    """Close the connections of a finished run. At its end, Python waits for paramiko's threads,
    each of which may need a second to notice it."""
    for host in hosts:
        client = getattr(host.connector, "client", None)
        transport = client.get_transport() if client else None
        if transport is not None and isinstance(transport.sock, socket.socket):
            with suppress(OSError):  # the host was faster
                transport.sock.shutdown(socket.SHUT_RDWR)


def _connect_or_say_why(connector: SSHConnector) -> None:
    """Call pyinfra's own connect, and raise only ConnectError."""
    register_secrets_of(connector.host.data.dict())  # --debug prints the login
    began = time.monotonic()
    try:
        _connect(connector)
    except Exception as error:  # any error of one host's connection
        silent = _silence(connector, time.monotonic() - began)
        found = _unreached(connector.host, error, silent)
        connector.host.connector_data[_WHY] = found
        raise ConnectError(silent or _cause(error)) from error
    transport = connector.client.get_transport() if connector.client else None
    if transport is not None:
        transport.open_session = _patient(transport.open_session)  # type: ignore[method-assign]


def _patient(open_session: Callable[..., paramiko.Channel]) -> Callable[..., paramiko.Channel]:
    """Retry to open a session. sshd frees a session a moment after its command has ended. If it
    allows few of them per connection (MaxSessions), it refuses a new one until then."""

    @wraps(open_session)
    def opened(*args: Any, **how: Any) -> paramiko.Channel:
        ends = time.monotonic() + _REFUSED
        while True:
            try:
                return open_session(*args, **how)
            except paramiko.ChannelException as error:
                if error.code != _CONNECT_FAILED or time.monotonic() >= ends:
                    raise
            time.sleep(_AGAIN)

    return opened


def _silence(connector: SSHConnector, seconds: float) -> str:
    """A text if the host accepted the connection but sshd sent nothing, "" for other causes. A peer
    that refuses a connection ends it at once."""
    transport = connector.client.get_transport() if connector.client else None
    if transport is None or transport.remote_version or seconds < _PROMPTLY:
        return ""
    port = connector.data["ssh_port"] or 22
    return (
        f"port {port} accepted the connection, but sshd sent no banner within {seconds:.0f} s: the "
        "host may hang"
    )


def _unreached(host: Host, error: Exception, silent: str) -> Finding:
    reason = error.__context__ or error
    if isinstance(reason, BadHostKeyException):
        key, known = (
            f"{key.algorithm_name} {key.fingerprint}" for key in (reason.key, reason.expected_key)
        )
        whom = _whom(host, reason.hostname)
        return HOST_KEY_CHANGED(host=host.name, whom=whom, key=key, known=known)
    if unknown := _UNKNOWN_KEY.fullmatch(str(reason)):
        return HOST_KEY_UNKNOWN(host=host.name, whom=_whom(host, unknown["address"]))
    return UNREACHABLE(host=host.name, cause=silent or _cause(error))


def _whom(host: Host, address: str) -> str:
    """The owner of the key: this host, or another host on the way to it."""
    own = str(host.data.get("ssh_hostname") or host.name)
    return "this host" if address.partition("]:")[0].lstrip("[") == own else one_line(address)


def _cause(error: Exception) -> str:
    """The error on one line, without secrets: the text may come from the peer."""
    reason = error.__context__ or error
    if isinstance(error, NoPassword) or isinstance(reason, NoPassword):
        said = _NO_PASSPHRASE
    elif isinstance(reason, NoValidConnectionsError):  # its text hides the reason
        whys = {getattr(each, "strerror", None) or str(each) for each in reason.errors.values()}
        ports = {str(address[1]) for address in reason.errors}
        said = f"{', '.join(sorted(whys))} (port {', '.join(sorted(ports))})"
    else:
        said = str(error) if isinstance(error, PyinfraError) else f"{type(error).__name__}: {error}"
    return quote_field(said)


def quiet_paramiko() -> None:
    """Suppress the stack traces that paramiko logs for exceptions that it also raises, and the
    lines of pyinfra about a changed host key, which GF018 explains."""
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    pyinfra.logger.addFilter(_without_key_warning)


def _without_key_warning(line: logging.LogRecord) -> bool:
    return (line.levelno, line.funcName) != (logging.WARNING, _connect_once.__name__)


def nodelay_transport(sock: Any, **kwargs: Any) -> paramiko.Transport:
    """An SSH transport without Nagle's delay, which costs 44 ms per command. It wakes up once a
    second while its host is silent; paramiko's own wakes up ten times."""
    transport = paramiko.Transport(sock, **kwargs)
    if isinstance(sock, socket.socket):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(_SILENCE)
    return transport
