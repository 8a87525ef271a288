"""Converts pyinfra's flat host data to typed settings and collects all errors of a host."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import ValidationError

from gpufleet.core.findings import Finding
from gpufleet.core.findings import settings as findings
from gpufleet.core.masks import mask_value
from gpufleet.core.secrets import hide_secrets, plain_urls
from gpufleet.core.settings import DIGITS_LOST, RoleSettings
from gpufleet.core.visible import printed_value

TYPES = {
    "bool_type": "True or False, without quotes",
    "int_type": "a whole number, without quotes",
    "string_type": "text, in quotes",
}
Roles = tuple[type[RoleSettings], ...]
RoleModel = TypeVar("RoleModel", bound=RoleSettings)
SETTING_SIMILARITY = 0.92  # similarity of two keys that differ by a typo; 1 means equal
OTHER_ROLE_SIMILARITY = 0.8  # similarity of a key and the one of another role that was meant
SHOWN_VALUE = 60  # characters of a wrong value shown in an error


def known_keys(roles: Roles) -> list[str]:
    """Every data key that the roles read, for example `driver_branch`."""
    return [role.prefix + name for role in roles for name in role.model_fields]


def unknown_keys(
    data: Mapping[str, Any], roles: Roles, given: Collection[str] = ()
) -> list[Finding]:
    """A finding for each key that looks like a role's but is read by no role. `given`: the keys
    that the command line sets."""
    found = sorted(key for key in data if _is_unknown(key, roles))
    return [_unknown(key, roles, place_of_key(key, given)) for key in found]


def place_of_key(key: str, given: Collection[str]) -> str:
    """Where a key is set, for a message. `given`: the keys that the command line sets."""
    return "--data" if key in given else "the inventory"


@lru_cache(maxsize=4096)  # hosts have the same keys, and fuzzy matching is slow
def _is_unknown(key: object, roles: Roles) -> bool:
    """True if no role reads the key, but it has a role's prefix or resembles a role's key."""
    if not isinstance(key, str) or key in known_keys(roles):
        return False
    reserved = tuple(role.prefix for role in roles if role.reserved)
    return key.startswith(reserved) or _near_miss(key, roles) is not None


def _near_miss(key: str, roles: Roles) -> str | None:
    """The known key closest to a misspelt one, such as `Driver-enabled` or `toolkitt_version`."""
    plain = key.lower().replace("-", "_")
    close = get_close_matches(plain, known_keys(roles), n=1, cutoff=SETTING_SIMILARITY)
    return close[0] if close and close[0][0] == plain[:1] else None


def _unknown(key: str, roles: Roles, place: str) -> Finding:
    prefixes = (role.prefix for role in roles if key.startswith(role.prefix))
    prefix = max(prefixes, key=len, default="")
    close = _near_miss(key, roles) or _similar_key(key, prefix, roles)
    hint = f"docs/reference/keys.md lists the keys that begin with {prefix}."
    if close:
        hint = f"Did you mean {close}?"
    other = "prefix" if prefix else "name"
    hint += f" If this is your own data, give it another {other}."
    return findings.UNKNOWN_KEY(key=key, place=place, suggestion=hint)


def _similar_key(key: str, prefix: str, roles: Roles) -> str | None:
    """A key of the same role with a similar name, else one of another role: a prefix alone makes
    two keys similar, as in cluster_name and cluster_helm."""
    names = [name for role in roles if role.prefix == prefix for name in role.model_fields]
    same = get_close_matches(key.removeprefix(prefix), names, n=1)
    others = [each for each in known_keys(roles) if not (prefix and each.startswith(prefix))]
    near = get_close_matches(key, others, n=1, cutoff=OTHER_ROLE_SIMILARITY)
    return next(iter([*(f"{prefix}{name}" for name in same), *near]), None)


def load_role(
    model: type[RoleModel], data: Mapping[str, Any], problems: list[Finding]
) -> RoleModel | None:
    """The settings of one role. Returns None after it added invalid values to `problems`."""
    keys = {name: model.prefix + name for name in model.model_fields}
    try:
        return model.model_validate({name: data[key] for name, key in keys.items() if key in data})
    except ValidationError as error:
        by_key: dict[str, list[Mapping[str, Any]]] = {}
        for detail in error.errors():
            by_key.setdefault(keys[str(detail["loc"][0])], []).append(detail)
        problems += [_invalid(key, details) for key, details in by_key.items()]
        return None


def _invalid(key: str, details: list[Mapping[str, Any]]) -> Finding:
    """One finding per key, even if pydantic reports an error for each of several types."""
    of_items = [detail for detail in details if any(type(part) is int for part in detail["loc"])]
    whole = [detail for detail in details if detail not in of_items]
    items = (_problem_of_item(detail) for detail in of_items)
    values = (problem_of(detail) for detail in whole)
    problem = "; and ".join(items) or "; or ".join(values)
    if details[0]["type"] == DIGITS_LOST:
        problem += f" (on the command line: --data '{key}=\"{details[0]['ctx']['example']}\"')"
    given = (whole or of_items)[0]["input"]
    value = "{…}" if isinstance(given, Mapping) and given else _shown(given)  # the problem names it
    return findings.INVALID_VALUE(key=key, value=value, problem=problem)


def _problem_of_item(detail: Mapping[str, Any]) -> str:
    """The problem of one item of a list or one entry of a mapping."""
    allowed = detail.get("ctx", {}).get("expected") if detail["type"] == "literal_error" else None
    item = _shown(detail["input"])
    problem = f"is not {allowed}" if allowed else problem_of(detail)
    return f"contains {item}, which {problem}"


def problem_of(detail: Mapping[str, Any]) -> str:
    """The problem of a value, from a pydantic error, as the end of a sentence."""
    if detail["type"] in TYPES:
        return f"must be {TYPES[detail['type']]}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    if message.startswith(("is ", "has ", "must ", "names ")):
        return message
    return f"is not allowed: {message[0].lower()}{message[1:]}"


def _shown(value: object) -> str:
    """An invalid value for a message: shortened, without registered secrets, logins and queries."""
    text = plain_urls(
        hide_secrets(printed_value(mask_value(value) if isinstance(value, Mapping) else value))
    )
    return text if len(text) <= SHOWN_VALUE else text[: SHOWN_VALUE - 1] + "…"
