"""Parses untrusted YAML, event by event, within limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # fast if PyYAML has its C code
DEEPEST = 200  # levels; PyYAML's C code overflows its stack at about ten thousand
DIRECTIVES = 100  # lines of %TAG and %YAML; libyaml compares each with all before it
_DIRECTIVE = re.compile(
    rb"(?:\A|[\n\r]|\xc2\x85|\xe2\x80[\xa8\xa9])%"
)  # at the start of a line, by libyaml's line breaks
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def parse_yaml_events(text: str | bytes) -> Iterator[Any]:
    """The events of yaml.parse. Raises YAMLError if the text is nested too deep or has too many
    directives, because libyaml's time grows with the square of both."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if data.startswith(_UTF_16):
        raise yaml.YAMLError("it is not UTF-8")
    if len(_DIRECTIVE.findall(data)) > DIRECTIVES:
        raise yaml.YAMLError(f"it has more than {DIRECTIVES} lines that begin with %")
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {DEEPEST} levels deep")
        yield event
