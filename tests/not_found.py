"""The response of an API server for a missing object."""

from __future__ import annotations

from typing import Any


def not_found(path: str) -> dict[str, Any]:
    """The Status of a 404. `path`: of the object, or of a subresource of it."""
    kind, name = path.removesuffix("/eviction").split("/")[-2:]
    about = {"kind": kind, "name": name}
    message = f'{kind} "{name}" not found'
    return {"kind": "Status", "reason": "NotFound", "message": message, "details": about}
