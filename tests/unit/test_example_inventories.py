"""The inventories that the README and the repository show hold settings that gpufleet takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpufleet.node.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


def groups(source: str) -> dict[str, tuple[list[Any], Mapping[str, Any]]]:
    """Groups with data, as pyinfra takes them from the names of an inventory file."""
    names: dict[str, Any] = {}
    exec(source, names)
    return {name: value for name, value in names.items() if isinstance(value, tuple)}


def readme_example() -> str:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return str(block)


def example_file() -> str:
    return (ROOT / "inventories" / "prod.py").read_text()


@pytest.mark.parametrize("source", [readme_example, example_file])
def test_its_settings_are_taken(source: Any) -> None:
    found = groups(source())
    assert found
    for name, (hosts, data) in found.items():
        assert hosts, name
        for host in hosts:
            own = host[1] if isinstance(host, tuple) else {}
            settings, findings = load_settings({**data, **own})
            assert settings is not None, findings
            assert findings == [], name


def test_the_example_of_the_readme_has_the_group_that_the_checks_read() -> None:
    assert list(groups(readme_example())) == ["gpu_nodes"]
