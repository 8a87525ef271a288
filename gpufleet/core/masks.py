"""Values that are safe to print: structure, numbers and known keys; other text is masked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import repeat
from typing import Any

import tomlkit

from gpufleet.core.redact import redact, secrets_in
from gpufleet.core.spellings import spellings
from gpufleet.core.visible import one_line, printed

MASK, MASK_CHANGED = "***", "*** (changed)"
SHORTEST = 5  # characters of a secret that is looked for in a text
MISSING = object()
_SECRET = re.compile(
    r"pass(word|wd|phrase)?$|passw|secret|token|credential|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|auth",
    re.IGNORECASE,
)
# secrets by which `redact` may know others: `client_secret: …`, `https://bob:…`
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")
# in an inventory these too: `masked`, whose result marks releases, shows no text below them anyway
_SECRET_DATA = re.compile(
    r"cookie|pwd(?![a-z])|psk(?![a-z])|webhook[_-]?ur[il]|slack_api_url|(?<![a-z])pass(?![a-z])"
    r"|(routing|service|integration|signing|encryption|account|master|shared|ngc|subscription)"
    r"[_-]?key|client-key-data|dockerconfigjson|dockercfg|jfrog-art-api",
    re.IGNORECASE,
)
# names of Secrets and fields, which are no secrets themselves
_REFERENCE = re.compile(r"^existing[A-Z]|[a-z](Name|Ref|Selector|Namespace)$|_name$|^passwordKey$")
# keys of charts and of container runtimes whose text says how, and never holds a secret
_WORDS = """
action apiVersion as class cpu customMetrics deviceClassWhitelist deviceLabelFields digest effect
folderAnnotation image imagePullPolicy interval job_name kind level logLevel memory
metricLabelsAllowlist metricsQuery
metricsRelistInterval metrics_path migStrategy mode mountPath mountPropagation name namespace
nvidiaDriverRoot operator passwordKey policy protocol provider pullPolicy regex registry repository
resource retention role scheme scrapeInterval scrape_interval seriesQuery storage strategy tag
timeout type userKey version
BinaryName bin_dir bip bridge cdi-spec-dirs cdi_spec_dirs cgroup-parent cgroup_manager conf_dir
data-root default-cgroupns-mode default-runtime default_runtime default_runtime_name
disabled_plugins exec-opts hooks_dir imports iptables live-restore log-driver log-level log_level
monitor_path runtime_path runtime_root runtime_type sandbox_image snapshotter state storage-driver
"""
_HARMLESS = frozenset(_WORDS.split())
_RELABELING = ("replacement", "separator", "sourceLabels", "source_labels", "targetLabel",
               "target_label")  # fmt: skip
# keys that are harmless below certain others
_HARMLESS_BELOW: Mapping[str, Collection[str]] = {
    "hostPath": ("path",),
    "matchExpressions": ("key", "operator", "values"),
    "metricRelabelings": _RELABELING,
    "metric_relabel_configs": _RELABELING,
    "podAnnotations": ("gpufleet/counters",),
    "relabel_configs": _RELABELING,
    "relabelings": _RELABELING,
    "runtimes": ("path", "runtimeType"),
    "tolerations": ("effect", "key", "operator", "value"),
}


class Secret(str):
    """A text that is used as any other, and whose repr does not show it: an error quotes that."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(MASK)


def masked(value: Any, other: Any = MISSING, *, keys: tuple[str, ...] = ()) -> Any:
    """`value` with every text masked that may be a secret, and numbers below secret keys too.

    `other`: what it is compared with, to report a change. `keys`: the way to it from the top.
    """
    if isinstance(value, Mapping):
        named = printed(value.get("name", ""), str)  # an entry of a container's `env`
        known = other if isinstance(other, Mapping) else {}
        return {
            _shown(printed(key, str), key if key in known else other): masked(
                inner, known.get(key, MISSING), keys=(*keys, *_way(printed(key, str), named))
            )
            for key, inner in value.items()
        }
    if isinstance(value, list):
        others = other if isinstance(other, list) else []
        return [
            masked(inner, others[i] if i < len(others) else MISSING, keys=keys)
            for i, inner in enumerate(value)
        ]
    if value is None or value == "" or isinstance(value, bool):
        return value
    if not any(map(_is_secret, keys)):
        if isinstance(value, int | float):
            return value
        if _is_harmless(keys):
            return _shown(printed(value, str), other)
    return MASK if other is MISSING or other == value else MASK_CHANGED


def without(text: str, values: Any) -> str:
    """`text`, for example an error of a server that quotes what it was sent, without logins and
    without what `masked` would not show of `values`.

    One word of letters alone is hidden only where its key says that it is a secret: it may be a
    word of the error itself (`ImagePullBackOff`).
    """
    hidden = {
        piece
        for keys, leaf, shown in _leaves(values, masked(values))
        if shown == MASK and (not leaf.isalpha() or any(map(_is_secret, keys)))
        for line in (leaf, *leaf.splitlines())
        for piece in spellings(line.strip())
        if len(piece) >= SHORTEST
    }
    return hide(text, sorted(hidden, key=len, reverse=True))


def guarded(value: Any, *, keys: tuple[str, ...] = ()) -> Any:
    """`value` with each text below a secret key as a Secret."""
    if isinstance(value, Mapping):
        named = printed(value.get("name", ""), str)
        return {
            key: guarded(inner, keys=(*keys, *_way(printed(key, str), named)))
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [guarded(inner, keys=keys) for inner in value]
    return Secret(value) if isinstance(value, str) and any(map(_holds_secret, keys)) else value


def secret_texts(values: Any, shortest: int = SHORTEST) -> list[str]:
    """What stands below secret keys, and the secrets within other texts, for `hide`: every line
    in all its spellings, the longest first."""
    found = {
        piece
        for keys, leaf, _ in _leaves(values, values)
        for secret in ([leaf] if any(map(_holds_secret, keys)) else secrets_in(leaf))
        if secret not in ("None", "True", "False")
        for line in (secret, *secret.splitlines())
        for piece in spellings(line.strip())
        if len(piece) >= shortest
    }
    return sorted(found, key=len, reverse=True)


def hide(text: str, secrets: Sequence[str]) -> str:
    """`redact`, and these secrets masked, the longest first. What is but a word is masked last:
    it may be the name of another."""
    text = redact(replaced(text, (piece for piece in secrets if not _WORD.fullmatch(piece))))
    return replaced(text, (piece for piece in secrets if _WORD.fullmatch(piece)))


def replaced(text: str, secrets: Iterable[str]) -> str:
    for piece in secrets:
        text = text.replace(piece, MASK)
    return text


def _leaves(
    value: Any, shown: Any, keys: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Every leaf: the keys that lead to it, its text, and what `masked` makes of it."""
    if isinstance(value, Mapping):
        named = printed(value.get("name", ""), str)
        for (key, inner), other in zip(value.items(), shown.values(), strict=False):
            yield from _leaves(inner, other, (*keys, *_way(printed(key, str), named)))
    elif isinstance(value, list | tuple | set | frozenset):
        others = shown if isinstance(shown, type(value)) else repeat(shown)
        for inner, other in zip(value, others, strict=False):
            yield from _leaves(inner, other, keys)
    elif isinstance(value, bytes):
        yield keys, value.decode("utf-8", "replace"), shown
    else:
        yield keys, printed(value, str), shown


def _shown(text: str, other: Any) -> str:
    """`text` without logins; a change of a masked value is reported."""
    plain = redact(text)
    changed = plain != text and other is not MISSING and other != text
    return f"{plain} (changed)" if changed else plain


def _way(key: str, named: str) -> tuple[str, ...]:
    """The key, and for the value of an environment variable its name before it."""
    return (named, key) if key == "value" and named else (key,)


def _is_secret(key: str) -> bool:
    return bool(_SECRET.search(key)) and not _REFERENCE.search(key)


def _holds_secret(key: str) -> bool:
    """Of the data of a host or cluster."""
    if _REFERENCE.search(key) or key.endswith("existing_secret"):
        return False
    return _is_secret(key) or bool(_SECRET_DATA.search(key))


def _is_harmless(keys: tuple[str, ...]) -> bool:
    last = keys[-1] if keys else ""
    if last in _HARMLESS or _REFERENCE.search(last):
        return True
    return any(last in _HARMLESS_BELOW.get(above, ()) for above in keys[:-1])


def flat_lines(value: Any, path: str = "") -> Iterator[str]:
    """A line `path: leaf` for every leaf, in the order of the keys."""
    if isinstance(value, Mapping) and value:
        for key, inner in sorted(value.items(), key=lambda item: str(item[0])):
            name = str(key) if re.fullmatch(r"[\w-]+", str(key)) else f'"{key}"'
            yield from flat_lines(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from flat_lines(inner, f"{path}[{place}]")
    elif path:
        yield f"{path}: {value}"


def file_difference(path: str, before: str, after: str) -> list[str]:
    """The difference of a text file, without its secrets.

    JSON and TOML are parsed and shown as a line for each setting; what cannot be parsed is not
    shown. Of other files the lines are shown.
    """
    names = (f"{path} (now)", f"{path} (wanted)")
    parse = _parser(path)
    if parse is None:
        old, new = (_lines(redact(text)) for text in (before, after))
        return list(unified_diff(old, new, *names, lineterm=""))
    try:
        was, will = (
            parse(text.lstrip("\ufeff")) if text.strip() else {} for text in (before, after)
        )
    except ValueError:  # its message may quote a secret
        return [f"{path}: what changes is not shown, for the file cannot be parsed"]
    old, new = (
        [one_line(line) for line in flat_lines(shown)] for shown in (masked(was), masked(will, was))
    )
    return list(unified_diff(old, new, *names, n=0, lineterm=""))


def _lines(text: str) -> list[str]:
    return [one_line(line) for line in text.removesuffix("\n").split("\n")] if text else []


def _parser(path: str) -> Callable[[str], Any] | None:
    if path.endswith(".json"):
        return json.loads
    if path.endswith(".toml") or path.startswith("/etc/crio/"):
        return lambda text: tomlkit.parse(text).unwrap()
    return None
