"""Registers the secrets that this process reads, and hides them in texts.

Code registers a value when it reads it: below a secret key of the inventory, in a login file or a
kubeconfig, or a generated token. `hide_secrets` replaces registered values in all output, logs and
reports. It does not recognize a secret that was never registered.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from gpufleet.core.visible import printed_value

MASK = "***"
SUDO_PASSWORD = "GPUFLEET_SUDO_PASSWORD"  # variable: for hosts without their own password
SHORTEST = 5  # characters of a hidden value; shorter values occur in any text
SECRET_PREFIX_CHARS = 4  # characters that index the register
MIN_TOKEN_CHARS = 16  # a user in a URL without password counts as a token from this length
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|passw|secret|token|credential|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|authorization|basic_?auth|^auth$|cookie|pwd(?![a-z])|psk(?![a-z])"
    r"|webhook[_-]?ur[il]|slack_api_url|(?<![a-z])pass(?![a-z])|^sig$|signature$"
    r"|(routing|service|integration|signing|encryption|account|master|shared|ngc|subscription)"
    r"[_-]?key|client-key-data|dockerconfigjson|dockercfg|jfrog-art-api",
    re.IGNORECASE,
)
# keys that name a Secret, a field, a file or a kind of credential
_NO_SECRET_KEY = re.compile(
    r"^existing[A-Z]|[a-z](Name|Ref|Selector|Namespace)$|[_-](name|file|path)$|File$|Path$"
    r"|^(name|namespace|type|mode|passwordKey)$|PullSecrets?$|existing_secret$|askpass$"
    r"|^token_?[uU]r[il]$|^cookie_samesite$",
)
_LOGIN = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://(?P<login>[^\s/]+)@")
_URL_LOGIN = re.compile(r"(://)\S*@")
_URL_QUERY = re.compile(r"(://[^\s?#]+[?#])[^\s'\"]+")
_HEADER = re.compile(r"\b(?:Bearer|Basic)\s+(?P<value>[^\s'\",]+)", re.IGNORECASE)
_JSON_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
_ASSIGNED = re.compile(
    r"\b(?P<key>[A-Za-z][\w.-]{0,100})[\"']?\s*[=:]\s*[\"']?(?P<value>[^\s&\"',;\[\]{}]+)"
)


def is_secret_key(key: str) -> bool:
    """True if the values below a key are secrets: `ssh_password`, `token`, `routing_key`."""
    return bool(_SECRET_KEY.search(key)) and not _NO_SECRET_KEY.search(key)


class SecretRegister:
    """Secret values in all their spellings."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._by_start: dict[str, list[str]] = {}

    def add(self, value: str) -> None:
        """Register a value, and each of its lines."""
        for secret in {value.strip(), *map(str.strip, value.splitlines())}:
            is_frame = secret.startswith("-----") and secret.endswith("-----")
            is_word = secret.lower() == "false"  # it is in most JSON
            if len(secret) < SHORTEST or is_frame or is_word or secret in self._values:
                continue
            self._values.add(secret)
            for text in spell_secret(secret):
                known = self._by_start.setdefault(text[:SECRET_PREFIX_CHARS], [])
                if text not in known:
                    known.append(text)
                    known.sort(key=len, reverse=True)

    def hide(self, text: str) -> str:
        if not self._values:
            return text
        parts: list[str] = []
        end = 0  # end of the text that was copied or hidden
        for at in range(len(text) - SECRET_PREFIX_CHARS + 1):
            for secret in self._by_start.get(text[at : at + SECRET_PREFIX_CHARS], ()):
                if text.startswith(secret, at):
                    parts += [text[end:at], MASK] if at >= end else []
                    end = max(end, at + len(secret))
                    break
        return "".join([*parts, text[end:]])


REGISTER = SecretRegister()  # the register of this process


def register_secret(value: str) -> None:
    REGISTER.add(value)


def hide_secrets(text: str) -> str:
    """`text` with *** in place of each registered value. A JSON document stays JSON."""
    hidden = REGISTER.hide(text)
    if hidden == text or text[:1] not in ("{", "["):
        return hidden
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return hidden
    shown = _JSON_VALUE.sub(_hide_json_value, text)
    words = _JSON_VALUE.sub(lambda found: found[0] if found[0][0] == '"' else "0", shown)
    return shown if REGISTER.hide(words) == words else hidden  # a secret may be JSON itself


def _hide_json_value(found: re.Match[str]) -> str:
    """A JSON string with *** in place of secrets. A number is hidden only if it is a secret."""
    value = json.loads(found[0])
    shown = REGISTER.hide(value if isinstance(value, str) else found[0])
    if shown == value or not (isinstance(value, str) or shown == MASK):
        return found[0]
    return json.dumps(shown)


def spell_secret(value: str) -> set[str]:
    """The spellings of a value: plain, and in JSON, Python, HTML, shells, URLs and base64."""
    data = value.encode("utf-8", "replace")
    found = {value, repr(value)[1:-1], html.escape(value), shlex.quote(value).strip("'")}
    for ascii_only in (True, False):
        found.add(quoted := json.dumps(value, ensure_ascii=ascii_only)[1:-1])
        found.add(re.sub("[&<>]", lambda each: f"\\u{ord(each[0]):04x}", quoted))  # as Go does
    found.add(value.replace("'", "'\\''"))
    found.add(re.sub(r'([$`"\\])', r"\\\1", value))  # in double quotes of a shell
    found.add(re.sub(r"([^\w@%+=:,./-])", r"\\\1", value, flags=re.ASCII))
    for encoded in (quote_plus(data), *(quote(data, safe=safe) for safe in ("", "/", "!'()*"))):
        found |= {encoded, re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), encoded)}
    found |= {base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()}
    for before in range(3):  # offsets of the value in a longer text in base64
        letters = base64.b64encode(bytes(before) + data).decode()
        part = letters[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        found |= {part, part.translate(str.maketrans("+/", "-_"))}
    return {text for text in found if len(text) >= SHORTEST}


def register_secrets_of(data: Any) -> None:
    """Register secrets in an inventory's data: values below secret keys, logins in URLs, private
    keys, and values that texts assign to secret keys, as in `--api-token=VALUE`."""
    for keys, text in _leaves(data, ()):
        if any(map(is_secret_key, keys)):
            register_secret(text)
        for secret in _secrets_within(text):
            register_secret(secret)


def without_secrets(value: Any, keys: tuple[str, ...] = ()) -> Any:
    """The data with *** in place of what register_secrets_of would register."""
    if isinstance(value, Mapping):
        return {key: without_secrets(each, _way(value, key, keys)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(each, keys) for each in value]
    if value is None or value == "" or isinstance(value, bool):
        return value
    if any(map(is_secret_key, keys)):
        return MASK
    if not isinstance(value, str):
        return value
    found = SecretRegister()
    for secret in _secrets_within(value):
        found.add(secret)
    return found.hide(value)


def register_secrets_of_environment() -> None:
    """Register secrets in this process's environment variables, such as a proxy's login."""
    register_secrets_of(
        {
            name: value
            for name, value in os.environ.items()
            if not (value.startswith("/") and os.path.exists(value))
        }
    )


def take_sudo_password() -> str | None:
    """The password that --ask-sudo-password left in the environment. It is removed from there, so
    child processes do not get it."""
    password = os.environ.pop(SUDO_PASSWORD, None)
    register_secret(password or "")
    return password


def _leaves(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each text and number with its path of keys. A key that names a reference resets the path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, _way(value, key, keys))
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _leaves(inner, keys)
    elif isinstance(value, bytes):
        yield keys, value.decode("utf-8", "replace")
    elif value is not None and not isinstance(value, bool):
        yield keys, printed_value(value, str)


def _way(value: Mapping[Any, Any], key: Any, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The path of keys to an entry of a mapping, which is at the path `keys`."""
    named = printed_value(value.get("name", ""), str)  # entry of a container's `env`
    name = printed_value(key, str)
    own = named if name == "value" and named else name
    harmless = _NO_SECRET_KEY.search(own) or (name == "key" and _is_selector(value, keys))
    return () if harmless else (*keys, own)


def _is_selector(value: Mapping[Any, Any], keys: tuple[str, ...]) -> bool:
    """True for a reference to a field of a Secret, as in `password: {name: login, key: password}`.
    The field's name must say so: any other text may be the secret itself."""
    field = value.get("key")
    known = isinstance(field, str) and (is_secret_key(field) or field in keys[-1:])
    return known and {*value} in ({"name", "key"}, {"name", "key", "optional"})


def _secrets_within(text: str) -> Iterator[str]:
    if "PRIVATE KEY-----" in text:
        yield text
    for found in _LOGIN.finditer(text):
        user, colon, password = found["login"].partition(":")
        if colon or len(user) >= MIN_TOKEN_CHARS:
            yield unquote(password or user)
    for found in _HEADER.finditer(text):
        yield found["value"]
    for found in _ASSIGNED.finditer(text):
        key, value = found["key"], found["value"]
        while not is_secret_key(key) and "=" in value:  # https://mirror/x?token=VALUE
            before, _, value = value.partition("=")
            key = re.split(r"[^\w.-]", before)[-1]
        if is_secret_key(key):
            yield unquote(value)


def plain_urls(text: str) -> str:
    """A text from another program's files, with logins and queries of URLs masked."""
    return _URL_QUERY.sub(rf"\1{MASK}", _URL_LOGIN.sub(rf"\1{MASK}@", text))
