"""pyinfra's connector for clusters, `@cluster/NAME`: each is a host of the inventory.

pyinfra identifies a host by its name and has only one `@local`. A cluster is accessed by its API;
its few commands run on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api.exceptions import InventoryError
from pyinfra.connectors.local import LocalConnector

GROUP = "@cluster"  # every cluster is in it, as `@local` is in `@local`


class ClusterConnector(LocalConnector):
    """A cluster under a name that the inventory chooses."""

    @staticmethod
    def make_names_data(name: str | None = None) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        """The host of a name in the inventory."""
        if not name:
            raise InventoryError("a cluster needs a name: @cluster/NAME")
        yield f"@cluster/{name}", {}, [GROUP]
