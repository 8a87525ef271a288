"""Alertmanager's configuration, built from the user's receivers and stored in its own Secret."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import yaml
from pyinfra import host

from gpufleet.core.findings import Finding
from gpufleet.host.boundary import fail_with
from gpufleet.host.operation import Commands, host_operation
from gpufleet.kube.objects import MANAGED_BY_LABELS
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.objects import write_object
from gpufleet.kube.operations.refused import ApiError
from gpufleet.monitoring.alertmanager import (
    CONFIG_KEY,
    CONFIG_SECRET,
    RECEIVERS_KEY,
    alertmanager_config,
    parse_receivers,
)
from gpufleet.monitoring.findings import RECEIVERS_WRONG


@host_operation
def ensure_config(api: ClusterApi, receivers: tuple[str, str] | None) -> Commands:
    """
    Write Alertmanager's configuration; its content is never printed.

    + api: of the cluster
    + receivers: namespace and name of the user's Secret, or None without such a Secret
    """
    if receivers is None:
        host.noop("Alertmanager is not configured")
        return
    namespace, name = receivers
    wanted = wanted_config(api, namespace, name)
    if isinstance(wanted, Finding):
        yield fail_with(wanted)
    elif _secret(api, namespace, CONFIG_SECRET).get(CONFIG_KEY) == wanted:
        host.noop("Alertmanager's configuration is up to date")
    else:
        path = f"/api/v1/namespaces/{namespace}/secrets/{CONFIG_SECRET}"
        about = {"name": CONFIG_SECRET, "namespace": namespace, "labels": MANAGED_BY_LABELS}
        data = {CONFIG_KEY: base64.b64encode(wanted.encode()).decode()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}
        yield write_object(f"write {path}", partial(api.apply, path, body), secret=True)


def wanted_config(api: ClusterApi, namespace: str, name: str) -> str | Finding:
    """The configuration with the receivers of a Secret, or the finding that prevents it."""
    secret = f"{namespace}/{name}"
    try:
        content = _secret(api, namespace, name)
    except ApiError as error:
        return RECEIVERS_WRONG(secret=secret, why=f"cannot be read ({error.reason})")
    if not content:
        return RECEIVERS_WRONG(secret=secret, why="does not exist or is empty")
    if RECEIVERS_KEY not in content:
        return RECEIVERS_WRONG(secret=secret, why=f"has no key {RECEIVERS_KEY}")
    try:
        config = alertmanager_config(parse_receivers(content[RECEIVERS_KEY]))
    except ValueError as error:
        return RECEIVERS_WRONG(secret=secret, why=str(error))
    return yaml.safe_dump(config, sort_keys=True)


def _secret(api: ClusterApi, namespace: str, name: str) -> dict[str, str]:
    """The decoded data of a Secret, or {} if it does not exist."""
    secret = api.find(f"/api/v1/namespaces/{namespace}/secrets/{name}") or {}
    data: dict[str, Any] = secret.get("data") or {}
    return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in data.items()}
