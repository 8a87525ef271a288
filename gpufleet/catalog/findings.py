"""Findings about the catalog, compared with the sources of its facts."""

from __future__ import annotations

from gpufleet.core.findings import warning

ENTRY_OLD = warning(
    "GF680",
    "Entry of the catalog is missing or out of date",
    "{gap}.",
    "Change {file}, or add an entry to catalog.d/ of your repository. `gpufleet catalog check "
    "--write FILE` writes a patch.",
    description="A source has a newer version, a driver branch or a minor that the catalog lacks, "
    "or another end of life.",
)

UNTRIED_NEWER = warning(
    "GF682",
    "Newer chart or Kubernetes than in the catalog",
    "{what} {version} is available{asks}; the newest in the catalog is {known}.",
    "Try it: install the chart on the Kubernetes minors of its pick, or create a cluster of the "
    "minor. Then change {file}. The patch of --write leaves this to you, because the catalog names "
    "only what was tried.",
)

ENTRY_GONE = warning(
    "GF683",
    "Package or chart of the catalog is not in its repository",
    "{name} {version} is not in the repository of {place}{near}.",
    "Compare the names and versions there with {file}, and correct them, or the repository's "
    "address.",
)

KEY_CHANGED = warning(
    "GF685",
    "Repository key changed",
    "The key of {what} is {found}; the catalog has {known}.",
    "Compare the fingerprint with an announcement of its owner, over another way than this "
    "address. Then change the entry in {file}. A patch does not contain keys.",
)

KEY_EXPIRES = warning(
    "GF686",
    "Repository key expires",
    "The key {fingerprint} of {what} {word} on {date}.",
    "Look for the owner's announcement of the next key or of a longer validity. Hosts reject the "
    "repository after that day, until they have it.",
)

SOURCE_UNREAD = warning(
    "GF688",
    "Source of the catalog was not read",
    "Not compared with the catalog: {title}. {url}: {reason}.",
    "Run again later. If the address has changed, correct it in the file of the catalog that has "
    "it: docs/reference/catalog.md.",
)
