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
