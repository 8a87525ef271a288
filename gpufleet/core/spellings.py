"""How a text may be written within another one, as an error that quotes it does."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote

LINES = (64, 76)  # letters of base64 in a line: of PEM, of MIME and base64(1)
LONGEST = 8 * 1024  # characters of a text that is looked for in quotes within quotes: they cost
SHORTEST = 5  # characters of a text whose base64 is looked for: that of others stands anywhere
_UNQUOTED = ("", "/", "!'()*", "$&+,;=", "$&+=:@")  # by Python, JavaScript and Go, beside _-.~


@lru_cache(maxsize=4096)
def spellings(text: str) -> frozenset[str]:
    """A text as it is, as Python, JSON, HTML, shells and URLs quote it, and its base64."""
    found = {text, *_in_json(text), *_in_python(text), *_in_html(text), *_in_urls(text)}
    if len(text) > LONGEST:  # a dashboard, a script
        return frozenset({*found, *_in_base64(text)})
    for once in (*_in_json(text), *_in_python(text)):
        found |= {*_in_json(once), *_in_html(once), *_in_urls(once), *_in_python(once)}
    found |= {twice for once in _in_urls(text) for twice in _in_urls(once)}
    found |= {*_in_shells(text), text.replace("'", "''"), text.replace("/", "\\/")}  # YAML, JSON
    if len(text) >= SHORTEST:
        found |= set(_in_base64(text))
    return frozenset(found)


def _in_json(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        yield (quoted := json.dumps(text, ensure_ascii=ascii_only)[1:-1])
        yield re.sub("[&<>]", lambda found: f"\\u{ord(found[0]):04x}", quoted)  # Go's


def _in_python(text: str) -> Iterator[str]:
    yield repr(text)[1:-1]
    yield (escaped := ascii(text)[1:-1])
    yield re.sub(r"\\[xuU][0-9a-f]+", lambda found: found[0][:2] + found[0][2:].upper(), escaped)
    yield repr(f'"{text}')[2:-1]  # beside other quotes
    yield repr(_bytes(text))[2:-1]


def _in_html(text: str) -> Iterator[str]:
    yield (quoted := html.escape(text))
    yield html.escape(text, quote=False)
    yield quoted.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")  # Go's


def _in_urls(text: str) -> Iterator[str]:
    """With capitals in the codes and without."""
    data = _bytes(text)
    for quoted in (quote_plus(data), *(quote(data, safe=safe) for safe in _UNQUOTED)):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)
    yield unquote(text)


def _in_shells(text: str) -> Iterator[str]:
    yield shlex.quote(text).strip("'")
    yield text.replace("'", "'\\''")  # bash's set -x
    yield re.sub(r'([$`"\\])', r"\\\1", text)  # in double quotes
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", text, flags=re.ASCII)  # bash's printf %q


def _in_base64(text: str) -> Iterator[str]:
    """Alone, with a line break, and at each of the three places where it may begin in a longer
    one: there without the letters that depend on what stands before and behind."""
    data = _bytes(text)
    for whole in (data, data + b"\n"):
        yield (letters := _base64(whole))
        for columns in LINES:
            lines = re.findall(f".{{1,{columns}}}", letters)
            yield from ("\n".join(lines), "\r\n".join(lines))
    for before in range(3):
        letters = _base64(bytes(before) + data)
        part = letters[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        yield part
        yield part.translate(_OF_URLS)


_OF_URLS = str.maketrans("+/", "-_")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
