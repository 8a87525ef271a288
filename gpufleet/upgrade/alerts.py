"""The alerts that fire in a Prometheus, from its answer. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import date
from urllib.parse import urlsplit

from gpufleet.core.entries import Entry, loader
from gpufleet.core.visible import one_line

# Source: https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/ and
# https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
# `upgrade: ignore`: label of rules that an upgrade causes without naming a host; users may set it.
QUERY = 'ALERTS{alertstate="firing",severity!="info",upgrade!="ignore"}'
SHOWN = 80  # characters of a name
HOST_LABELS = ("node", "kubernetes_node", "nodename", "hostname", "Hostname", "host", "instance")


class Caused(Entry):
    """alerts.yaml, which explains its fields."""

    as_of: date
    source: str
    unnamed: tuple[str, ...]


load_caused = loader(Caused, "upgrade/alerts")


def check_url(value: str) -> str:
    """Raises ValueError for what is no address of a server, and for one with a login: settings are
    shown and stored."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address such as http://prometheus.example:9090")
    if parts.username or parts.password:
        raise ValueError("must have no login: use an address that needs none")
    return value


def check_names(value: str) -> str:
    """Raises ValueError for what is no regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return value


def firing(answer: bytes, ignored: str, away: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the alerts, without those that `ignored` matches as a whole, and without those
    about hosts that are `away`: names and addresses of hosts that the upgrade has out of service.
    Raises ValueError for what is no answer of a Prometheus."""
    out = {name.lower() for name in away}
    caused = load_caused().unnamed if out else ()
    try:
        data = json.loads(answer)
        if data["status"] != "success":
            raise ValueError(one_line(str(data.get("error"))))
        found = [each["metric"] for each in data["data"]["result"]]
        names = {str(labels["alertname"]) for labels in found if not _hosts(labels) & out}
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("it is no result of a query") from error
    spared = re.compile(ignored)
    left = {name for name in names if name not in caused and not spared.fullmatch(name)}
    return tuple(sorted(one_line(name)[:SHOWN] for name in left))


def _hosts(labels: Mapping[str, str]) -> set[str]:
    """The hosts that an alert names, in lower case; an instance has a port, which is left out."""
    texts = (str(labels.get(name) or "").lower() for name in HOST_LABELS)
    return {re.sub(r":\d+$", "", text).strip("[]") for text in texts if text}
