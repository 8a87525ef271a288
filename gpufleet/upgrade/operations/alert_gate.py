"""Asks a Prometheus which alerts fire, before a host is taken out of service."""

from __future__ import annotations

import threading
from collections.abc import Collection
from urllib.parse import urlencode

import urllib3

from gpufleet.core.limits import MIB, Limit
from gpufleet.core.quoting import quote_field
from gpufleet.core.responses import read_response, within
from gpufleet.upgrade.alerts import QUERY, firing

TIMEOUT = 10.0  # seconds to connect, and between two parts of the answer
# 1,000 alerts have less than 1 MB.
ALERTS = Limit("the alerts of a Prometheus", 16 * MIB, 60)


def alerts_of(url: str, ignored: str, away: Collection[str] = ()) -> tuple[str, ...]:
    """What fires about hosts that are not `away`; where it cannot be said, why: then no host is
    begun either."""
    address = f"{url.rstrip('/')}/api/v1/query?{urlencode({'query': QUERY})}"

    def work(given_up: threading.Event) -> tuple[str, ...]:
        answer = urllib3.PoolManager().request(
            "GET", address, preload_content=False, redirect=False, retries=False, timeout=TIMEOUT
        )
        data = read_response(answer, ALERTS, given_up)
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return firing(data, ignored, away)

    try:
        return within(ALERTS.seconds, work)
    except TimeoutError:
        return (f"{url} has no answer: {ALERTS.too_slow}",)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        return (f"{url} has no answer: {quote_field(str(error), 200)}",)
