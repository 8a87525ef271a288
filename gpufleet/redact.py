"""Text without its secrets, for diffs and error messages."""

from __future__ import annotations

import re

_URL_PASSWORD = re.compile(r"(?P<head>[a-z][a-z0-9+.-]*://[^\s:/@\"']+):[^\s@\"']+@", re.IGNORECASE)
_SECRET = re.compile(
    r"""(?P<head>["']?[\w.-]*(?:password|passwd|secret|token|auth|credential|apikey|api_key)[\w.-]*["']?
        \s*[=:]\s*)(?P<quote>["']?)(?P<value>[^"'\s,}][^"'\n,}]*)(?P=quote)""",
    re.IGNORECASE | re.VERBOSE,
)


def redact(text: str) -> str:
    """`text` with passwords in URLs and the values of secret-looking keys replaced by ***."""
    text = _URL_PASSWORD.sub(r"\g<head>:***@", text)
    return _SECRET.sub(r"\g<head>\g<quote>***\g<quote>", text)


LONGEST_COMMAND = 80  # characters
_USERINFO = re.compile(r"(://)[^\s/@]+@")
_OPTION = re.compile(
    r"(?P<head>(?<!\S)--?[\w.-]*(?:password|passwd|secret|token|auth|credential|key)[\w.-]*\s+)\S+",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(?P<head>\b(?:bearer|basic)\s+)\S+", re.IGNORECASE)
_TOKEN = re.compile(r"\b(?:sk|hf|nvapi|ghp|github_pat|glpat|xox[abp]|AKIA)[-_]?[\w-]{12,}")


def redact_command(line: str) -> str:
    """A process's command line for people: on one line, without secrets, shortened at its end."""
    line = " ".join(line.split())
    line = _USERINFO.sub(r"\1***@", line)
    line = _HEADER.sub(r"\g<head>***", _OPTION.sub(r"\g<head>***", line))
    line = _TOKEN.sub("***", redact(line))
    if len(line) > LONGEST_COMMAND:
        return line[: LONGEST_COMMAND - 1].rstrip() + "…"
    return line
