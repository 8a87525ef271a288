"""The base class of all settings models, and field types that they share."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

DIGITS_LOST = "digits_lost"  # pydantic error type; its `example` is a right value


def in_quotes(example: str) -> BeforeValidator:
    """Rejects a float, because the inventory has lost its last zeros."""

    def check(value: Any) -> Any:
        if isinstance(value, float):
            raise PydanticCustomError(
                DIGITS_LOST,
                "is a number, and numbers lose their last zeros; write it in quotes, with every "
                'digit, as in "{example}"',
                {"example": example},
            )
        return value

    return BeforeValidator(check)


def split_names(value: Any) -> Any:
    """A list, or comma-separated names from the command line, as a tuple."""
    if isinstance(value, str) and value != "auto":
        return tuple(name.strip() for name in value.split(","))
    return tuple(value) if isinstance(value, list) else value


def _check_url(value: str) -> str:
    if not value.startswith(("http://", "https://", "file:///")):
        raise ValueError("must start with https://, http:// or file:///")
    if "?" in value or "#" in value:  # a bucket's signature or token
        raise ValueError(
            "must not contain a query or a fragment: paths are appended to it, and it is written "
            "to world-readable files"
        )
    return value.rstrip("/")


def _check_address(text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        address = None
    if address is None or "%" in text:
        raise ValueError("must be an IP address, for example 127.0.0.1, 0.0.0.0 or ::")
    return str(address)


Address = Annotated[str, AfterValidator(_check_address)]


def without_login(setting: str) -> AfterValidator:
    """Rejects a URL with a user or password. `setting` names the file for the login, or is ""."""
    place = f"; put them into the file that {setting} sets" if setting else ""

    def check(value: str) -> str:
        if "@" in value.split("://", 1)[1]:
            raise ValueError(f"must not contain a user or password{place}")
        return value

    return AfterValidator(check)


def must_match(pattern: str, what: str) -> AfterValidator:
    """Requires the whole text to match. `what` describes the format for the user."""
    allowed = re.compile(pattern)

    def check(value: str) -> str:
        if not allowed.fullmatch(value):
            raise ValueError(f"must be {what}")
        return value

    return AfterValidator(check)


def whole_version(example: str) -> AfterValidator:
    """Requires two or three numbers with dots between them."""
    return must_match(r"[0-9]+\.[0-9]+(\.[0-9]+)?", f"a whole version, such as {example}")


def _joined(value: Any) -> Any:
    """A fingerprint as gpg prints it, in groups and any case, converted to 40 upper case digits."""
    return "".join(value.split()).upper() if isinstance(value, str) else value


Fingerprint = Annotated[
    str,
    BeforeValidator(_joined),
    must_match(
        r"[0-9A-F]{40}", "a whole fingerprint: 40 hexadecimal digits, as `gpg -k` prints it"
    ),
]
_AnyUrl = Annotated[
    str,
    must_match(
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"`$\\]+",
        "a URL without spaces, quotes, $ and \\, such as https://mirror.example.com/nvidia",
    ),
    AfterValidator(_check_url),
]
Url = Annotated[_AnyUrl, without_login("")]
DriverUrl = Annotated[_AnyUrl, without_login("driver_repo_logins")]
ToolkitUrl = Annotated[_AnyUrl, without_login("toolkit_repo_logins")]


def _check_path(value: str) -> str:
    """Requires a path that every shell, unit and configuration file reads as one word."""
    if not re.fullmatch(r"/[A-Za-z0-9_.@+:,/-]+", value, re.ASCII) or value.endswith("/"):
        raise ValueError(
            "must be the absolute path of a file, with only letters, digits and _ . @ + : , / -"
        )
    return value


HostFile = Annotated[str, AfterValidator(_check_path)]


def _plain(value: Any, path: str = "") -> Any:
    """Require `value` to consist of JSON types. Error messages show its keys, but no values."""
    place = path and f" in {path}"
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str | int | float):
                raise ValueError(f"has a key of type {type(key).__name__}{place}; {_ALLOWED}")
            _plain(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            _plain(inner, path)
    elif not isinstance(value, str | int | float | None):
        raise ValueError(f"has a value of type {type(value).__name__}{place}; {_ALLOWED}")
    return value


_ALLOWED = "allowed are text, numbers, booleans, None, lists and mappings"
Values = Annotated[dict[str, Any], AfterValidator(_plain)]


class RoleSettings(BaseModel):
    """Settings of one role; `prefix` plus a field's name is the data key.

    `reserved`: other keys with the prefix are errors.

    Strict: "yes" is not a boolean, "9400" not a number. The command line passes both types.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    prefix: ClassVar[str]
    reserved: ClassVar[bool] = True


def values_of(annotation: Any) -> str:
    """Describes in words the values that a field accepts: by a text in its annotation, else by its
    type."""
    if annotation in (bool, int, str):
        return {bool: "True, False", int: "a number", str: "text"}[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f'`"{part}"`' for part in parts)
    if hasattr(annotation, "__metadata__"):
        texts = (part for part in annotation.__metadata__ if isinstance(part, str))
        return next(texts, None) or values_of(parts[0])
    if origin is dict:
        return "a mapping"
    if origin in (tuple, list):
        return f"a list of {values_of(parts[0])}"
    words = [values_of(part) for part in parts if part is not type(None)]
    return " or ".join(dict.fromkeys(words))
