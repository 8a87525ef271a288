"""The settings in the example inventories of the README and the repository are valid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpufleet.node.settings import load_node_settings

ROOT = Path(__file__).resolve().parents[2]


def groups(source: str) -> dict[str, tuple[list[Any], Mapping[str, Any]]]:
    """Groups with their data: pyinfra makes one of each public name in an inventory file."""
    names: dict[str, Any] = {}
    exec(source, names)
    return {name: value for name, value in names.items() if isinstance(value, tuple)}


def readme_example() -> str:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return str(block)


def example_file() -> str:
    return (ROOT / "inventories" / "prod.py").read_text()


def new_fleet() -> str:
    """The inventory that `gpufleet init` writes."""
    return (ROOT / "templates/init/inventories/prod.py").read_text()


@pytest.mark.parametrize("source", [readme_example, example_file, new_fleet])
def test_its_settings_are_taken(source: Any) -> None:
    found = groups(source())
    assert found
    for name, (hosts, data) in found.items():
        assert hosts, name
        for host in hosts:
            own = host[1] if isinstance(host, tuple) else {}
            settings, findings = load_node_settings({**data, **own})
            assert settings is not None, findings
            assert findings == [], name


@pytest.mark.parametrize("source", [readme_example, new_fleet])
def test_a_first_inventory_has_the_group_that_the_checks_read(source: Any) -> None:
    assert list(groups(source())) == ["gpu_nodes"]
