"""Active devices of NetBox (3.6 and newer) that have the tag gpufleet and a primary address:

    export NETBOX_URL=https://netbox.example.com NETBOX_TOKEN=...
    gpufleet plan inventories/netbox.py

They are in gpu_nodes, those of the role control-plane in control_plane. The custom field
gpufleet_gpus, if it exists, becomes node_gpus. Other groups: rack_r07, model_dgx_h100, site_ams1,
tag_SLUG. The token, of either version, is sent to NETBOX_URL only.
Answer: https://netboxlabs.com/docs/netbox/integrations/rest-api/, DeviceSerializer in
https://github.com/netbox-community/netbox (netbox/dcim/api), read 2026-11-29
"""

from __future__ import annotations

import os
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from gpufleet.run.sources import (
    FLEET_TAG,
    Answer,
    Machine,
    SourceError,
    group_machines,
    parse_answer,
)

_TITLE = "NetBox /api/dcim/devices/"
_url, _token = (os.environ.get("NETBOX_URL", ""), os.environ.get("NETBOX_TOKEN", "").strip())
if not _url.startswith(("https://", "http://")) or not _token:
    raise SourceError("netbox: set NETBOX_URL, as https://netbox.example.com, and NETBOX_TOKEN")


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """A redirect is an error: it would send the token to another address."""


def _ask(offset: int) -> Answer:
    """One page of devices."""
    kind = "Bearer" if _token.startswith("nbt_") else "Token"
    query = urlencode({"tag": FLEET_TAG, "status": "active", "limit": 500, "offset": offset})
    try:
        request = Request(f"{_url.rstrip('/')}/api/dcim/devices/?{query}")
        request.add_header("Authorization", f"{kind} {_token}")
        with build_opener(_NoRedirect()).open(request, timeout=60) as response:
            return parse_answer(response.read(), _TITLE)
    except (OSError, HTTPException, ValueError) as error:  # its text may have the token
        status = f"HTTP status {error.code}" if isinstance(error, HTTPError) else "no answer"
        raise SourceError(f"{_TITLE}: {status} ({type(error).__name__})") from None


def _machines() -> list[Machine]:
    rows: list[Answer] = []
    while True:
        page = _ask(len(rows))
        rows += (found := page.rows("results"))
        if not found or len(rows) >= page.need("count", int):
            return [_machine(row) for row in rows if row.get("primary_ip", dict)]


def _machine(row: Answer) -> Machine:
    return Machine(
        name=row.need("name", str),
        address=row.need("primary_ip.address", str).partition("/")[0],
        group="control_plane" if row.need("role.slug", str) == "control-plane" else "gpu_nodes",
        gpus=row.get(f"custom_fields.{FLEET_TAG}_gpus", int),
        traits={
            "rack": row.get("rack.name", str),
            "site": row.get("site.slug", str),
            "model": row.get("device_type.model", str),
        },
        labels=[("tag", tag.need("slug", str)) for tag in row.rows("tags")],
    )


globals().update(group_machines(_machines(), f"netbox: no active device has the tag {FLEET_TAG}"))
