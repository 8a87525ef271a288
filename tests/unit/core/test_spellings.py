"""A known secret is hidden however another program writes it."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import time
from collections.abc import Callable
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.known_secrets import KnownSecrets
from gpufleet.core.masks import replaced, secret_texts, without
from gpufleet.core.spellings import spellings

SECRET = "p@ss/w0rd+it's<é>&\\x \"fin"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "JSON": json.dumps,
    "JSON of letters": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON of Go": lambda text: json.dumps(text).replace("&", r"\u0026").replace("<", r"\u003c")
    .replace(">", r"\u003e"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON of letters in JSON": lambda text: json.dumps(
        json.dumps(text, ensure_ascii=False), ensure_ascii=False
    ),
    "part of a URL": lambda text: quote(text, safe=""),
    "path of a URL": quote,
    "small codes": lambda text: re.sub(
        "%..", lambda code: code[0].lower(), quote(text, safe="")
    ),
    "query": lambda text: urlencode({"x": text}),
    "URL of a browser": lambda text: quote(text, safe="!'()*"),
    "login of Go": lambda text: quote(text, safe="$&+,;="),
    "shell": shlex.quote,
    "shell with backslashes": lambda text: re.sub(r"([^\w@%+=:,./-])", r"\\\1", text, flags=re.A),
    "YAML": lambda text: f"""'{text.replace("'", "''")}'""",
    "URL in a URL": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON in HTML": lambda text: html.escape(json.dumps(text)),
    "JSON in a URL": lambda text: quote(json.dumps(text), safe=""),
    "repr of JSON": lambda text: repr(json.dumps(text)),
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "HTML of Go": lambda text: html.escape(text)
    .replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "base64": _base64,
    "base64 of a line": lambda text: _base64(f"{text}\n"),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "base64 in lines of MIME": lambda text: base64.encodebytes(text.encode()).decode().replace(
        "\n", "\r\n"
    ),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    **{
        f"base64 behind {before!r}": lambda text, before=before: _base64(f"{before}{text}:x")
        for before in ("u:", "us:", "use:")
    },
}  # fmt: skip


def _left(shown: str, spelt: str) -> str:
    """The letters of the secret's own spelling that are still there."""
    return max(
        (spelt[start:end] for start in range(len(spelt)) for end in range(start + 8, len(spelt) + 1)
         if spelt[start:end] in shown), key=len, default="",
    )  # fmt: skip


@pytest.mark.parametrize("secret", [SECRET, "hunter2hunter2", "a/b+c&d", "it's a-Secret" * 9])
@pytest.mark.parametrize("way", WAYS)
def test_every_spelling_is_hidden(way: str, secret: str) -> None:
    spelt = WAYS[way](secret)
    text = f"rejected {spelt} here"
    values = {"ssh_password": secret}
    for shown in (replaced(text, secret_texts(values)), KnownSecrets(values).hide(text)):
        assert "***" in shown
        assert not _left(shown, spelt), shown
    shown = without(text, {"grafana": {"adminPassword": secret}})
    assert "***" in shown
    assert not _left(shown, spelt), shown


@pytest.mark.parametrize("way", ["repr", "JSON", "part of a URL", "query", "HTML", "base64"])
def test_of_a_long_secret_the_common_ones_are_hidden(way: str) -> None:
    secret = "A+b/ <é>" * 2000
    shown = without(f"rejected {WAYS[way](secret)} here", {"password": secret})
    assert "***" in shown
    assert len(shown) < 99


@given(st.text(min_size=1, max_size=12), st.binary(max_size=4), st.binary(max_size=4))
def test_base64_within_a_longer_one(text: str, before: bytes, behind: bytes) -> None:
    secret = f"{text}12345"
    shown = base64.b64encode(before + secret.encode("utf-8", "replace") + behind).decode()
    assert any(piece in shown for piece in spellings(secret) if len(piece) > 5)


@given(st.text(max_size=20))
def test_any_text_has_spellings(text: str) -> None:
    assert text in spellings(text)


def test_a_short_secret_does_not_hide_what_happens_to_hold_its_base64() -> None:
    assert KnownSecrets({"password": "k7"}).hide("azc and k7") == "azc and ***"


def test_a_long_text_costs_little() -> None:
    """A dashboard in the values of a chart, which an error quotes."""
    dashboard = json.dumps(
        {"panels": [{"title": f'a "b" {n}', "expr": "x/y"} for n in range(6000)]}
    )
    began = time.process_time()
    shown = without(f"refused: {json.dumps(dashboard)}", {"secrets": {"dashboard": dashboard}})
    assert time.process_time() - began < 4  # seconds: with every spelling it takes 14
    assert shown == 'refused: "***"'
