"""pyinfra's connector for clusters, `@cluster/NAME`: each cluster is a host of the inventory.

pyinfra identifies a host by its name and allows only one `@local`. A cluster is accessed over its
API, and its few commands run on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api.exceptions import InventoryError
from pyinfra.connectors.local import LocalConnector

CLUSTER_GROUP = "@cluster"  # the group of all clusters, as `@local` is of `@local`


class ClusterConnector(LocalConnector):
    """A cluster with a name that the inventory chooses."""

    @staticmethod
    def make_names_data(name: str | None = None) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        """The host for a name in the inventory."""
        if not name:
            raise InventoryError("a cluster needs a name: @cluster/NAME")
        yield f"@cluster/{name}", {}, [CLUSTER_GROUP]
