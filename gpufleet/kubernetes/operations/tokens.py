"""Join tokens, created on a control plane of the cluster."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from pyinfra import state
from pyinfra.api import Host, StringCommand

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.secrets import register_secret
from gpufleet.core.stopped import Stopped
from gpufleet.host.asking import frame_command, framed_answer, host_arguments, is_connected
from gpufleet.host.boundary import current_step
from gpufleet.host.shell import quote_command, script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.host.trouble import explain_failed_command
from gpufleet.kubernetes.findings import joining as found
from gpufleet.kubernetes.findings.cluster import NO_CONTROL_PLANE_READY
from gpufleet.kubernetes.kubeadm import JoinToken, certificates_configuration

TOKEN_MINUTES = 15
TOKEN_PARTS = {"endpoint", "token", "hash", "version"}
NAMES_TOKEN = re.compile(r"failed to create or update bootstrap token with name \S+: ")
KEY_BYTES = 32  # of an AES key


def ask_control_plane(there: Host, *command: str) -> str:
    """The output of a command on a host, which is not printed. Raises Stopped if it fails."""
    asked = frame_command(quote_command(*command))
    ok, output = run_on_host(there, asked, **host_arguments(there))
    lines = framed_answer(output.stdout_lines) if ok else None
    if not lines:
        step = current_step(state, there)
        raise Stopped(explain_failed_command(there, output.stderr_lines, step))
    return "\n".join(lines) + "\n"


def token_of(sources: Sequence[str]) -> JoinToken:
    """A token of the first control plane that makes one. Raises Stopped."""
    return _first(sources, script_command("kubernetes/token", str(TOKEN_MINUTES)))[1]


def token_with_key(sources: Sequence[str], version: str, api: str) -> tuple[str, JoinToken]:
    """The control plane's name, and a token for a further control plane, with a separate key. The
    certificates are in the cluster until withdraw() removes them. `api`: of the joining kubeadm,
    which is not newer. Raises Stopped."""
    key = secrets.token_hex(KEY_BYTES)
    register_secret(key)
    text = certificates_configuration(key, version, api)
    asked = script_command("kubernetes/token", str(TOKEN_MINUTES), "certificates")
    return _first(sources, asked, key, text)


def withdraw_certificates(source: str) -> Finding | None:
    """Remove the certificates from the cluster. Returns a finding if that fails."""
    there = state.inventory.get_host(source)
    try:
        ok, _ = run_on_host(there, script_command("kubernetes/withdraw"), **host_arguments(there))
    except Exception:  # noqa: BLE001 - whatever it is, they expire
        ok = False
    return None if ok else found.CERTIFICATES_STAY(control_plane=source)


def _first(
    sources: Sequence[str], asked: StringCommand, key: str = "", config: str = ""
) -> tuple[str, JoinToken]:
    """The first control plane that makes a token, and the token."""
    problems: list[Finding] = []
    for name in sources:
        there = state.inventory.get_host(name)
        if there in state.failed_hosts or not there.connected:
            continue
        try:
            return name, _token(there, asked, key, config)
        except Stopped as error:
            problems += error.findings
    if problems and len(sources) == 1:
        raise Stopped(*problems)
    raise Stopped(NO_CONTROL_PLANE_READY(control_plane=" or ".join(sources)), *problems)


def _token(there: Host, asked: StringCommand, key: str, config: str) -> JoinToken:
    """A token that lives minutes. Never printed, not even at -vvv."""
    how = {**host_arguments(there), **({"_stdin": config.splitlines()} if key else {})}
    ok, output = run_on_host(there, frame_command(asked), **how)
    lines = framed_answer(output.stdout_lines) if ok else None
    if not lines and not is_connected(there):
        raise Stopped(NO_CONTROL_PLANE_READY(control_plane=there.name))
    said = dict(line.partition(" ")[::2] for line in lines or ())
    if not said.keys() >= TOKEN_PARTS:
        said_last = quote_last_line(NAMES_TOKEN.sub("", "\n".join(output.stderr_lines)))
        problem = said_last.rstrip(".") or "it printed nothing"
        raise Stopped(found.NO_TOKEN(control_plane=there.name, answer=problem))
    register_secret(said["token"])
    return JoinToken(said["endpoint"], said["token"], said["hash"], said["version"], key)
