"""Tests if a Kubernetes API answers at an address, without credentials."""

from __future__ import annotations

import json
import ssl
from contextlib import closing
from http.client import HTTPException, HTTPSConnection

MAX_ANSWER_BYTES = 100_000  # bytes of an answer
SECONDS = 3
# https://kubernetes.io/docs/reference/access-authn-authz/rbac/#discovery-roles (read 2026-11-24):
# /version is open to all, unless an administrator has closed it
DENIED = (401, 403)


def kubernetes_at(address: str, seconds: float = SECONDS) -> str:
    """Version of the Kubernetes API at host:port, "of unknown version" if it is hidden, or "" if no
    API answers. No secret is sent, so the certificate is not verified."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        connection = HTTPSConnection(host.strip("[]"), int(port), timeout=seconds, context=context)
        with closing(connection):
            connection.request("GET", "/version")
            response = connection.getresponse()
            return version_in(response.status, response.read(MAX_ANSWER_BYTES))
    except (OSError, HTTPException, ValueError):
        return ""


def version_in(status: int, body: bytes) -> str:
    """The version in an answer to /version."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    if status in DENIED and data.get("kind") == "Status":
        return "of unknown version"
    found = data.get("gitVersion") if status == 200 else None
    return found if isinstance(found, str) else ""
