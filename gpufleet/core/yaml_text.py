"""Writes YAML for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Writes multi-line text as a block."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _block)


def yaml_text(content: Mapping[str, Any], *, sort_keys: bool = False) -> str:
    """A manifest or file: keys in their order, text as blocks, lines of about 100 characters."""
    return str(
        yaml.dump(dict(content), Dumper=_Dumper, sort_keys=sort_keys, width=100, allow_unicode=True)
    )
