"""Findings about versions that are known not to work together."""

from __future__ import annotations

from gpufleet.core.findings import warning

KNOWN_BAD = warning(
    "GF746",
    "Known-bad combination of versions",
    "{versions}: {happens} ({id})",
    "{remedy} Source: {source}",
    description="Versions on the host or in the cluster are known not to work together. The "
    "finding names the entry of the table of combinations.",
    advice="The finding says what to change. docs/reference/combinations.md lists all entries "
    "with their sources.",
)
