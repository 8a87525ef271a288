"""Findings about the catalog, compared with the sources of its facts."""

from __future__ import annotations

from gpufleet.core.findings import warning

VERSION_NEWER = warning(
    "GF680",
    "Newer version than in the catalog",
    "{what} {version} is available in {places}; the newest in the catalog is {known}.",
    "Add it to {file}, or to catalog.d/ of your repository. `gpufleet catalog check --write FILE` "
    "writes a patch.",
)

ENTRY_MISSING = warning(
    "GF681",
    "Entry missing in the catalog",
    "The catalog has no {what}.",
    "Add it to {file}, or to catalog.d/ of your repository. `gpufleet catalog check --write FILE` "
    "writes a patch.",
    description="A source has a driver branch, a minor of Kubernetes or a minor of a container "
    "runtime that the catalog does not have.",
)

CHART_NEWER = warning(
    "GF682",
    "Newer chart than in the catalog",
    "{chart} {version} is available{asks}; the newest in the catalog is {known}.",
    "Install it on the Kubernetes minors of its pick, then change charts.yaml. The patch of "
    "--write leaves this to you, because the catalog chooses only charts that were tried.",
)

PACKAGE_GONE = warning(
    "GF683",
    "Package of the catalog is not in its repository",
    "{package} {version} is not in the repository of {place}{near}.",
    "Compare the package names of that version with {file}, and correct them there.",
)

CHART_GONE = warning(
    "GF684",
    "Chart of the catalog is not in its repository",
    "{chart} {version}, which the catalog chooses, is not in the index of {repository}.",
    "Choose another version in charts.yaml, or correct the address of the repository.",
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

END_DIFFERS = warning(
    "GF687",
    "End of life differs from the catalog",
    "The end of life of {what} is {date}; the catalog has {known}.",
    "Correct it in {file}. `gpufleet catalog check --write FILE` writes a patch.",
)

KUBERNETES_NEWER = warning(
    "GF689",
    "Newer Kubernetes than kubeadm's in the catalog",
    "Kubernetes {version} is released; the newest that the catalog has for kubeadm is {known}.",
    "Create a cluster of that minor, then change kubernetes.yaml: newest, pause, requirements. The "
    "patch of --write leaves this to you, because the minor must be tried first.",
)

SOURCE_UNREAD = warning(
    "GF688",
    "Source of the catalog was not read",
    "Not compared with the catalog: {title}. {url}: {reason}.",
    "Run again later. If the address has changed, correct it in the file of the catalog that has "
    "it: docs/reference/catalog.md.",
)
