"""Reads the .repo files of yum and dnf, and disables sections in them. Pure."""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass

from gpufleet.facts.model import ManagedFile, NodeFacts

YUM_FOLDER = "/etc/yum.repos.d/"
WRITTEN_BY_LINE = "# Written by gpufleet.\n"  # first line of templates/repository/rpm.repo
SWITCHED_OFF_MARK = "# Switched off by gpufleet:"
_HEADER = re.compile(r"^\[(?P<name>.+)\]")  # as in configparser: anything may follow
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # lines as in configparser
_ENABLED = re.compile(r"^enabled\s*[=:]", re.IGNORECASE)
_TRUE = ("1", "yes", "true", "on")
# A user's options for the network access to a repository and the selection of packages, yum.conf(5)
_USERS = (
    "bandwidth", "cost", "exclude", "excludepkgs", "includepkgs", "ip_resolve", "metadata_expire",
    "minrate", "priority", "proxy", "proxy_auth_method", "proxy_password", "proxy_username",
    "retries", "skip_if_unavailable", "sslcacert", "sslclientcert", "sslclientkey", "sslverify",
    "throttle", "timeout",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """One repository of a .repo file."""

    path: str
    name: str
    urls: tuple[str, ...]  # baseurl, mirrorlist, metalink
    enabled: bool


def read_sections(facts: NodeFacts) -> tuple[list[Section], list[str]]:
    """Every section of the host's .repo files, and the files that cannot be parsed."""
    sections: list[Section] = []
    unreadable: list[str] = []
    for path, file in sorted(facts.files.items()):
        if not (path.startswith(YUM_FOLDER) and path.endswith(".repo")):
            continue
        try:
            sections += _sections(path, file.content or "")
        except configparser.Error:
            unreadable.append(path)
        if file.error:
            unreadable.append(path)
    return sections, unreadable


def _sections(path: str, text: str) -> list[Section]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except AttributeError as error:  # before Python 3.13: a continuation line after a bare name
        raise configparser.ParsingError(path) from error
    return [
        Section(
            path,
            name,
            tuple(
                url
                for key in ("baseurl", "mirrorlist", "metalink")
                for url in re.split(r"[\s,]+", parser.get(name, key, fallback="") or "")
                if url
            ),
            (parser.get(name, "enabled", fallback="1") or "").strip().lower() in _TRUE,
        )
        for name in parser.sections()
    ]


def users_settings(file: ManagedFile | None, name: str) -> str:
    """A section's lines about the user's network access to it and selection of packages."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(file.content or "" if file else "")
    except (configparser.Error, AttributeError):
        return ""
    found = dict(parser[name]) if parser.has_section(name) else {}
    lines = {key: found[key].replace("\n", "\n  ") for key in _USERS if found.get(key)}
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def other_sections(file: ManagedFile | None, name: str) -> str:
    """The other sections of a file, without the comment that gpufleet writes above its own."""
    blocks = re.split(r"(?m)^(?=\[)", file.content or "" if file else "")[1:]
    kept = [block for block in blocks if not block.startswith(f"[{name}]")]
    text = "".join(kept).replace(WRITTEN_BY_LINE, "")
    return text if text.endswith("\n") or not text else text + "\n"


def switch_off(text: str, names: set[str], why: str) -> str:
    """`text` with these sections disabled and a comment added. No other line changes."""
    off = [f"{SWITCHED_OFF_MARK} {why}\n", "enabled=0\n"]
    changed: list[str] = []
    for block in re.split(r"(?m)^(?=\[.+\])", f"{text}\n" if text and text[-1] != "\n" else text):
        lines = _LINE.findall(block)
        header = _HEADER.match(lines[0]) if lines else None
        if header and header["name"] in names:
            if not any(map(_ENABLED.match, lines)):
                lines.insert(1, "enabled=1\n")
            lines = [each for line in lines for each in (off if _ENABLED.match(line) else [line])]
        changed += lines
    return "".join(changed)


def switched_off(facts: NodeFacts) -> list[str]:
    """Names of the sections that an earlier run disabled."""
    found = []
    for path, file in sorted(facts.files.items()):
        if path.startswith(YUM_FOLDER):
            for block in re.split(r"(?m)^(?=\[)", file.content or ""):
                header = _HEADER.match(block.splitlines()[0]) if block else None
                if header and SWITCHED_OFF_MARK in block:
                    found.append(header["name"])
    return found
