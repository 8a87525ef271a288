"""Makes values safe to print: structure, numbers and known keys stay, other text is masked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import unified_diff
from typing import Any

import tomlkit

from gpufleet.core.secrets import MASK, is_secret_key, plain_urls, without_secrets
from gpufleet.core.visible import one_line, printed_value

MASK_CHANGED = "*** (changed)"
MISSING = object()
# keys that name a Secret or a field, and hold no secret
_REFERENCE = re.compile(r"^existing[A-Z]|[a-z](Name|Ref|Selector|Namespace)$|_name$|^passwordKey$")
# keys of charts and container runtimes whose text is an option, never a secret
_WORDS = """
action apiVersion as class cpu customMetrics deviceClassWhitelist deviceLabelFields digest effect
folderAnnotation image imagePullPolicy interval job_name kind level logLevel memory
metricLabelsAllowlist metricsQuery
metricsRelistInterval metrics_path migStrategy mode mountPath mountPropagation name namespace
nvidiaDriverRoot operator passwordKey policy protocol provider pullPolicy regex registry repository
resource resourceApiVersion retention role scheme scrapeInterval scrape_interval seriesQuery storage
strategy tag timeout type userKey version
BinaryName bin_dir bip bridge cdi-spec-dirs cdi_spec_dirs cgroup-parent cgroup_manager conf_dir
data-root default-cgroupns-mode default-runtime default_runtime default_runtime_name
disabled_plugins exec-opts hooks_dir imports iptables live-restore log-driver log-level log_level
monitor_path runtime_path runtime_root runtime_type sandbox_image snapshotter state storage-driver
"""
_HARMLESS = frozenset(_WORDS.split())
_RELABELING = ("replacement", "separator", "sourceLabels", "source_labels", "targetLabel",
               "target_label")  # fmt: skip
# below these, all keys are: the API server shows labels to everyone who may list objects
_LABELS = frozenset(("additionalLabels", "labels", "matchLabels", "nodeSelector"))
# below these, all texts are: configurations of the device plugin, by their names
_PLUGIN_CONFIGS = (("config", "data"), ("config", "map"))
# keys that are harmless below certain other keys
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


def mask_value(value: Any, other: Any = MISSING, *, keys: tuple[str, ...] = ()) -> Any:
    """`value` with all text masked that may be a secret, and with numbers below secret keys masked.

    `other`: a value to compare with, to show a change. `keys`: the path of keys to `value`.
    """
    if isinstance(value, Mapping):
        named = printed_value(value.get("name", ""), str)  # entry of a container's `env`
        known = other if isinstance(other, Mapping) else {}
        return {
            plain_urls(printed_value(key, str)): mask_value(
                inner, known.get(key, MISSING), keys=(*keys, *_way(printed_value(key, str), named))
            )
            for key, inner in value.items()
        }
    if isinstance(value, list):
        others = other if isinstance(other, list) else []
        return [
            mask_value(inner, others[i] if i < len(others) else MISSING, keys=keys)
            for i, inner in enumerate(value)
        ]
    if value is None or value == "" or isinstance(value, bool):
        return value
    if not any(map(is_secret_key, keys)):
        if isinstance(value, int | float):
            return value
        text = printed_value(value, str)
        if _is_harmless(keys) and plain_urls(text) == text:
            return text
    return MASK if other is MISSING or other == value else MASK_CHANGED


def _way(key: str, named: str) -> tuple[str, ...]:
    """The key. For an environment variable's value, the variable's name comes first."""
    return (named, key) if key == "value" and named else (key,)


def _is_harmless(keys: tuple[str, ...]) -> bool:
    last = keys[-1] if keys else ""
    if last in _HARMLESS or _REFERENCE.search(last):
        return True
    if (len(keys) > 1 and keys[-2] in _LABELS) or keys[-3:-1] in _PLUGIN_CONFIGS:
        return True
    return any(last in _HARMLESS_BELOW.get(above, ()) for above in keys[:-1])


def flat_lines(value: Any, path: str = "") -> Iterator[str]:
    """One line `path: leaf` for every leaf, in the order of the keys."""
    if isinstance(value, Mapping) and value:
        for key, inner in sorted(value.items(), key=lambda item: str(item[0])):
            name = str(key) if re.fullmatch(r"[\w-]+", str(key)) else f'"{key}"'
            yield from flat_lines(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list | tuple) and value:
        for place, inner in enumerate(value):
            yield from flat_lines(inner, f"{path}[{place}]")
    elif path:
        yield f"{path}: {value}"


def file_difference(path: str, before: str, after: str, *, secret: bool = False) -> list[str]:
    """The difference of a text file.

    JSON and TOML are shown as one line per setting, with masked text. Other formats are shown with
    passwords and logins masked. A `secret` file, and a file that cannot be parsed, is not shown.
    """
    hidden = [f"{path}: it changes, and is not shown: it holds a login"]
    if secret:
        return hidden
    names = (f"{path} (now)", f"{path} (wanted)")
    parse = _parser(path)
    if parse is None:
        a, b = (_lines(without_secrets(text)) for text in (before, after))
        return list(unified_diff(a, b, *names, lineterm="")) or hidden * (before != after)
    try:
        was, will = (
            parse(text.lstrip("\ufeff")) if text.strip() else {} for text in (before, after)
        )
    except ValueError:  # the message may quote a secret
        return [f"{path}: it changes, and is not shown: it cannot be parsed"]
    old, new = (
        [one_line(line) for line in flat_lines(shown)]
        for shown in (mask_value(was), mask_value(will, was))
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
