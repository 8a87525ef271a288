"""Findings about the user's own entries of the catalog."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info

OWN_FILE_UNREAD = blocker(
    "GF209",
    "File of catalog.d cannot be used",
    "Cannot use {file}: {why}. Nothing was done.",
    "Correct or remove the file: it has the keys and types of the catalog's own file of that name. "
    "docs/how-to/catalog.md shows its form.",
)

OWN_ENTRIES = info(
    "GF211",
    "The catalog has entries of your own",
    "catalog.d/ changes the catalog: {entries}.",
    "Remove an entry once the catalog of your gpufleet has it.",
)
