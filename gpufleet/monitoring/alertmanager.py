"""Alertmanager's configuration: routes and inhibitions of the GPU alerts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from gpufleet.core.render import render_template

CONFIG_SECRET = "gpufleet-alertmanager"
CONFIG_KEY = "alertmanager.yaml"
RECEIVERS_KEY = "receivers.yaml"
DEFAULT_RECEIVER = "default"
NOBODY_RECEIVER = "gpufleet-nobody"  # a receiver without integrations, for alerts that are not sent


def parse_receivers(text: str) -> list[dict[str, Any]]:
    """Alertmanager's receivers, as a Secret's receivers.yaml holds them.

    Raises ValueError for another text. Its message repeats nothing of a receiver but names.
    """
    try:
        receivers = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # a ValueError for a date such as 2026-13-01
        raise ValueError(f"its {RECEIVERS_KEY} is no YAML") from error
    if not isinstance(receivers, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in receivers
    ):
        raise ValueError(f"its {RECEIVERS_KEY} is no list of receivers with a name each")
    names = [one["name"] for one in receivers]
    if len(set(names)) < len(names):
        raise ValueError("a name is there twice")
    if DEFAULT_RECEIVER not in names:
        raise ValueError(f"none of its receivers is named {DEFAULT_RECEIVER}")
    return receivers


def alertmanager_config(receivers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The whole configuration. `receivers`: as `parse_receivers` gives them.

    A receiver named `critical`, `warning` or `info` gets the alerts of that severity, `default` the
    others. Alerts of severity info are not sent unless a receiver is named info.
    """
    names = {str(one["name"]) for one in receivers}
    text = render_template(
        "monitoring/alertmanager.yaml",
        default=DEFAULT_RECEIVER,
        silent=NOBODY_RECEIVER,
        critical="critical" if "critical" in names else DEFAULT_RECEIVER,
        warning="warning" if "warning" in names else DEFAULT_RECEIVER,
        info="info" if "info" in names else NOBODY_RECEIVER,
    )
    return {**yaml.safe_load(text), "receivers": [*receivers, {"name": NOBODY_RECEIVER}]}
