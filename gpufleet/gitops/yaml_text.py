"""Writes YAML with small diffs: sorted keys, and one line per value. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

FILE_MARK = "Written by `gpufleet render`, which overwrites changes."  # first line of each file
# texts that Go's parsers read as numbers or booleans, and Python's does not: 1e5, 0o7, y
_READ_OTHERWISE = re.compile(r"[yYnN]|[-+.]?\d[\w.+-]*", re.ASCII)
WIDEST = 2**31 - 1  # characters of a line: a folded text would change in many lines
# PyYAML's C code is fast, and its texts with U+0085 are read back unchanged; Python's are not
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class StableDumper(_Dumper):  # type: ignore[misc]
    """Writes texts of several lines as blocks, and no references to equal objects."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    quoted = "'" if _READ_OTHERWISE.fullmatch(text) else None
    style = "|" if "\n" in text else quoted
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


StableDumper.add_representer(str, _text)


def yaml_file(documents: Iterable[Mapping[str, Any]]) -> str:
    """A file with these documents, below gpufleet's mark."""
    text = yaml.dump_all(documents, Dumper=StableDumper, width=WIDEST, allow_unicode=True)
    return f"# {FILE_MARK}\n{text}"
