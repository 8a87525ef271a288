"""pyinfra's connector of clusters, `@cluster/NAME`: each is a host of the inventory.

pyinfra knows a host by its name and has one `@local` alone. A cluster is reached by its API, from
this machine; what little is run for it is run here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api.exceptions import InventoryError
from pyinfra.connectors.local import LocalConnector

GROUP = "@cluster"  # that every cluster is in, as every host of `@local` is in `@local`


class ClusterConnector(LocalConnector):
    """A cluster under a name of the inventory's own choice."""

    @staticmethod
    def make_names_data(name: str | None = None) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        """The one host that a name of the inventory stands for."""
        if not name:
            raise InventoryError("a cluster needs a name: @cluster/NAME")
        yield f"@cluster/{name}", {}, [GROUP]
