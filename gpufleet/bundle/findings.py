"""Findings about bundles."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

PACKAGES_NOT_LISTED = blocker(
    "GF665",
    "Packages for a bundle cannot be listed",
    "{manager} cannot list what it would download: {problem}",
    "Correct the sources of this host, or exclude the host: --exclude HOST.",
)
SOURCE_UNKNOWN = blocker(
    "GF666",
    "Source of a file is unknown",
    "No repository of this host lists {what} with its sha256, or the address of its repository is "
    "not http or https, or has a login.",
    "Use repositories that list sha256 digests, over http or https, without a login.",
)
FILE_NOT_KEPT = blocker(
    "GF667",
    "File of a bundle was not stored",
    "{path} is not in the bundle: {why}.",
    "Run the command again: it keeps the files that are complete.",
)
BUNDLE_FILE_DIFFERS = warning(
    "GF668",
    "File of a bundle is not that of the manifest",
    "{path} {how}.",
    "Delete it if it is in the folder, and copy the bundle or run `gpufleet bundle create` again. "
    "If nobody changed or added it, look for the reason: the bundle may have been tampered with.",
    description="The message says whether the file has changed, is missing, or is not in the "
    "manifest.",
)
NOT_A_BUNDLE = blocker(
    "GF671",
    "Folder is not a bundle",
    "{path} is not a complete bundle: {why}.",
    "Make it with `gpufleet bundle create INVENTORY --output DIR`. After an interruption, run the "
    "same command again.",
)
NOT_IN_BUNDLE = warning(
    "GF672",
    "Not in the bundle",
    "The bundle does not have {what}: {why}.",
    "{remedy}",
    advice="Install the program that the message names, or mirror that image or chart yourself.",
)
LISTS_EXPIRE = warning(
    "GF674",
    "Lists of a bundle expire",
    "{path} is valid until {date}. Later, apt on hosts refuses it and the packages that it lists.",
    "Create the bundle again before that day. Or let hosts accept older lists: a file in "
    '/etc/apt/apt.conf.d with `Acquire::Check-Valid-Until "false";`.',
)
NOT_PUSHED = warning(
    "GF673",
    "Image or chart was not pushed",
    "{what} is not in the registry: {why}.",
    "Log in to the registry with `skopeo login` and `helm registry login`, and run the command "
    "again.",
)
