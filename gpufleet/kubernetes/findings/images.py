"""Findings about archives of images."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NO_ROOM = blocker(
    "GF965",
    "Not enough disk space for image archives",
    "{count:archive needs|archives need} some {needed} MiB, packed and unpacked; {path} "
    "has {free} MiB free.",
    "Free space on the host, or shorten kubernetes_image_archives.",
)
IMPORT_FAILED = blocker(
    "GF966",
    "Container images not imported",
    "containerd did not take the images of {archive}. Its answer follows.",
    "Compare the archive with a whole copy: `ctr images import FILE` on a machine with containerd.",
)
ARCHIVE_CHANGED = blocker(
    "GF967",
    "Image archive changed during the run",
    "{archive} is no longer the file that the run started with.",
    "Run again once it is complete.",
)
