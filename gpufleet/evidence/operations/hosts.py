"""Collects the evidence of a host over its open connection, with one command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyinfra.api import Host

from gpufleet.core.findings import Finding
from gpufleet.core.secrets import without_secrets
from gpufleet.evidence.archive import EvidenceArchive
from gpufleet.evidence.models import Evidence, EvidenceFile, MissingEvidence
from gpufleet.evidence.parse import parse_evidence
from gpufleet.facts.model import NodeFacts
from gpufleet.host.asking import OUTPUT_MARK, frame_command, host_arguments
from gpufleet.host.shell import script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.host.trouble import explain_error, explain_failed_command

DURING_EVIDENCE = "while its evidence was collected"
LOGIN_FILES = "/etc/apt/auth.conf.d/"  # files that hold nothing but logins


def collect_host(
    archive: EvidenceArchive, host: Host, facts: NodeFacts | Finding, *, bug_report: bool
) -> None:
    """Store the evidence of a host whose facts were read. Raises nothing.

    `bug_report`: run NVIDIA's own report, too, which takes minutes."""
    if isinstance(facts, Finding):
        return  # the caller lists the reason
    folder = host_folder(host.name)
    archive.add(folder, _configuration(facts))
    try:
        command = frame_command(script_command("evidence/collect", "yes" if bug_report else "no"))
        ok, output = run_on_host(host, command, **_arguments(host))
        archive.add(folder, map(_masked, parse_evidence(_answer(output.stdout_lines))))
        if not ok:
            found = explain_failed_command(host, output.stderr_lines, DURING_EVIDENCE)
            archive.note_lost(folder, found.text)
    except Exception as error:  # noqa: BLE001 - the boundary: one host
        archive.note_lost(folder, explain_error(host, error, DURING_EVIDENCE).text)


def host_folder(name: str) -> str:
    """The folder of a host in the archive."""
    return f"hosts/{name}"


def _arguments(host: Host) -> Mapping[str, Any]:
    """The connector's arguments without the user's time limit: each item has its limit."""
    return {key: value for key, value in host_arguments(host).items() if key != "_timeout"}


def _answer(lines: Sequence[str]) -> list[str]:
    """The lines of the script, even if its end is missing."""
    marks = [number for number, line in enumerate(lines) if line == OUTPUT_MARK]
    if not marks:
        return []
    return list(lines[marks[0] + 1 : marks[1] if len(marks) > 1 else None])


def _configuration(facts: NodeFacts) -> Iterator[Evidence]:
    """The configuration files that facts have: of runtimes, modprobe, packages, gpufleet."""
    for path, file in facts.files.items():
        if path.startswith(LOGIN_FILES):
            continue
        name = f"files{path}"
        if file.content is not None:
            yield _masked(EvidenceFile(name, file.content, f"file {path}"))
        elif file.error:
            yield MissingEvidence(name, file.error)


def _masked(found: Evidence) -> Evidence:
    """A configuration file without values of keys such as password."""
    if isinstance(found, MissingEvidence) or not found.name.startswith("files/"):
        return found
    return replace(found, text=str(without_secrets(found.text)))
