"""Asks a Prometheus for firing alerts before a host is taken out of service."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Mapping
from datetime import date
from urllib.parse import urlencode

import urllib3

from gpufleet.core.entries import Entry, entry_loader
from gpufleet.core.limits import MIB, Limit
from gpufleet.core.quoting import quote_field
from gpufleet.core.responses import read_response, run_within
from gpufleet.core.tls import tls_context
from gpufleet.core.visible import one_line

# Source: https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/ and
# https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
# `upgrade: ignore`: label of rules that an upgrade causes without naming a host; users may set it.
QUERY = 'ALERTS{alertstate="firing",severity!="info",upgrade!="ignore"}'
MAX_ALERT_CHARS = 80  # characters of a name
HOST_LABELS = ("node", "kubernetes_node", "nodename", "hostname", "Hostname", "host", "instance")
ALERTS_TIMEOUT = 10.0  # seconds to connect, and between parts of the answer
# 1,000 alerts have less than 1 MB.
ALERTS = Limit("the alerts of a Prometheus", 16 * MIB, 60)


class Caused(Entry):
    """alerts.yaml, which explains its fields."""

    as_of: date
    source: str
    unnamed: tuple[str, ...]


load_caused = entry_loader(Caused, "upgrade/alerts")


def alerts_of(url: str, ignored: str, away: Collection[str] = ()) -> tuple[str, ...]:
    """The firing alerts about hosts that are not `away`. If Prometheus cannot be asked, the reason
    is returned as an alert, so that no host begins."""
    address = f"{url.rstrip('/')}/api/v1/query?{urlencode({'query': QUERY})}"

    def work(given_up: threading.Event) -> tuple[str, ...]:
        answer = urllib3.PoolManager(ssl_context=tls_context()).request(
            "GET",
            address,
            preload_content=False,
            redirect=False,
            retries=False,
            timeout=ALERTS_TIMEOUT,
        )
        data = read_response(answer, ALERTS, given_up)
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return firing_alerts(data, ignored, away)

    try:
        return run_within(ALERTS.seconds, work)
    except TimeoutError:
        return (f"{url} has no answer: {ALERTS.too_slow}",)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        return (f"{url} has no answer: {quote_field(str(error), 200)}",)


def firing_alerts(answer: bytes, ignored: str, away: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the alerts, without full matches of `ignored` and without alerts about hosts
    that are `away`: names and addresses of hosts that the upgrade has out of service. Raises
    ValueError if the text is not an answer of Prometheus."""
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
    return tuple(sorted(one_line(name)[:MAX_ALERT_CHARS] for name in left))


def _hosts(labels: Mapping[str, str]) -> set[str]:
    """The hosts that an alert names, in lower case, without the port of an instance."""
    texts = (str(labels.get(name) or "").lower() for name in HOST_LABELS)
    return {re.sub(r":\d+$", "", text).strip("[]") for text in texts if text}
