"""The image archives that a host lacks, and whether it has room for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.limits import MIB
from gpufleet.facts.files import HOME
from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.archives import ImageArchive, read_archive
from gpufleet.kubernetes.findings import joining as found
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.toolkit.config.tables import parse_tables

IMAGES_FOLDER = f"{HOME}/images"  # of uploads on a host
STORE = "/var/lib/containerd"  # by default
UPLOAD_MOUNTS = ("/var", "/")  # the first that is known
STORE_MOUNTS = (STORE, *UPLOAD_MOUNTS)


@dataclass(frozen=True, slots=True)
class Present:
    """Images in containerd: names, each with its digest, and all digests."""

    images: Mapping[str, str]
    blobs: Collection[str]

    def has(self, archive: ImageArchive) -> bool:
        """True if containerd has all images of an archive, in the same version."""
        return all(
            self.images.get(name) == digest or (name in self.images and digest in self.blobs)
            for name, digest in archive.images
        )


def pending_archives(paths: Sequence[str], facts: NodeFacts) -> tuple[ImageArchive, ...]:
    """The archives that the host's record does not have."""
    known = facts.provenance.entry(KubernetesEntry).archives
    archives = (read_archive(path) for path in paths)
    return tuple(archive for archive in archives if archive.digest not in known)


def room_for(archives: Sequence[ImageArchive], facts: NodeFacts) -> Iterator[Finding]:
    """One is uploaded after the other, and removed again; their images stay, in a folder that is
    unknown if containerd has another root."""
    if not archives:
        return
    free = facts.free_bytes
    upload = next((path for path in UPLOAD_MOUNTS if path in free), "")
    store = next((path for path in STORE_MOUNTS if path in free), "")
    runtime = facts.runtimes.get("containerd")
    main = parse_tables(facts.texts.get(runtime.config_path)) if runtime else {}
    needs = {upload: max(each.size for each in archives)}
    if main.get("root", STORE) == STORE:
        place = upload if free.get(store) == free.get(upload) else store  # one file system
        needs[place] = needs.get(place, 0) + sum(each.room for each in archives)
    for path, needed in needs.items():
        if path and needed > free[path]:
            yield found.NO_ROOM(
                count=len(archives), needed=needed // MIB + 1, path=path, free=free[path] // MIB
            )


def with_archives(paths: Sequence[str], old: KubernetesEntry) -> dict[str, Any]:
    """The part of the record. Those of today alone: an archive whose tags another one has taken
    over since is imported again."""
    if not paths and "archives" not in old.model_fields_set:
        return {}
    return {"archives": sorted(read_archive(path).digest for path in paths)}
