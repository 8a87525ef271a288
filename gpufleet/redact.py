"""Text without its secrets, for diffs and error messages."""

from __future__ import annotations

import re

# what stands before @ in an address; a password may hold a / or an @ itself, a port does not
_LOGIN = re.compile(
    r"(?P<head>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://)"
    r"(?:[^\s/@:\"'?#]+:(?!\d+(?:[/?#\s\"']|$))[^\s\"']*@|[^\s/\"'?#]*@)",
    re.IGNORECASE,
)
# a name is looked at from its beginning alone: a long one must not cost the square of its length
_SECRET = re.compile(
    r"""(?P<head>["']?(?<![\w.-])(?=[\w.-]*(?:pass(?:word|wd|phrase|(?![a-z]))|secret|token|auth|credential
        |api[_-]?key|access[_-]?key|private[_-]?key))[\w.-]+["']?\s*[=:]\s*)
        (?P<value>"(?:\\.|[^"\\\n])*"|'[^'\n]*'(?=\s*(?:[,}\]#]|$))|[^\s"'][^\n]*|["'][^\n]*)""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_SCHEME = re.compile(r"\b(?P<head>(?:Basic|Bearer)\s+)[A-Za-z0-9+/=._~-]{8,}", re.IGNORECASE)
_PRIVATE_KEY = re.compile(
    r"(?P<head>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?P<tail>-----END|\Z)", re.DOTALL
)


def redact(text: str) -> str:
    """`text` with logins in addresses, values of secret-looking keys and private keys masked."""
    text = _PRIVATE_KEY.sub(r"\g<head>***\g<tail>", text)
    text = _LOGIN.sub(r"\g<head>***@", text)
    text = _SCHEME.sub(r"\g<head>***", text)
    return _SECRET.sub(_mask, text)


def _mask(found: re.Match[str]) -> str:
    quote = found["value"][0] if found["value"][0] in "\"'" else ""
    return f"{found['head']}{quote}***{quote}"


LONGEST_COMMAND = 80  # characters
LONGEST_READ = 1000
_USERINFO = re.compile(r"(://)[^\s/@]+@")
_OPTION = re.compile(
    r"(?P<head>(?<!\S)--?[\w.-]*(?:pass(?:word|wd|phrase|(?![a-z]))|secret|token|auth|credential|key)[\w.-]*\s+)\S+",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(?P<head>\b(?:bearer|basic)\s+)\S+", re.IGNORECASE)
_TOKEN = re.compile(r"\b(?:sk|hf|nvapi|ghp|github_pat|glpat|xox[abp]|AKIA)[-_]?[\w-]{12,}")


def redact_command(line: str) -> str:
    """A process's command line for people: on one line, without secrets, shortened at its end."""
    line = " ".join(line[:LONGEST_READ].split())
    line = _USERINFO.sub(r"\1***@", line)
    line = _HEADER.sub(r"\g<head>***", _OPTION.sub(r"\g<head>***", line))
    line = _TOKEN.sub("***", redact(line))
    if len(line) > LONGEST_COMMAND:
        return line[: LONGEST_COMMAND - 1].rstrip() + "…"
    return line
