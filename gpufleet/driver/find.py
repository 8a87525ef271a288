"""Finds GPUs by name or PCI device id, and distributions by any of their names."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from gpufleet.driver.catalog import DriverCatalog

_MAKER_WORDS = {"nvidia", "tesla", "quadro", "geforce"}


@dataclass(frozen=True, slots=True)
class FoundGpu:
    """PCI device ids that match the text. `problem`: none match, or several generations do."""

    devices: tuple[int, ...]
    problem: str = ""


def find_gpu(catalog: DriverCatalog, text: str) -> FoundGpu:
    """The GPU that matches `text`. A name of several boards of one generation is enough."""
    by_id = re.fullmatch(r"(?:10de:|0x)?([0-9a-f]{4})", text.strip().lower())
    words = _words(text)
    index = [(gpu, name, _words(name)) for gpu in catalog.gpus.gpus for name in gpu.names]
    exact = [(gpu, name) for gpu, name, own in index if own == words]
    loose = [(gpu, name) for gpu, name, own in index if set(words) <= set(own)]
    matches = exact or loose
    if matches and words:
        if len({catalog.generation(gpu.id) for gpu, _ in matches}) == 1:
            return FoundGpu((min(gpu.id for gpu, _ in matches),))
        listed = ", ".join(sorted({name for _, name in matches}))
        return FoundGpu((), f"{text!r} matches GPUs of several generations: {listed}.")
    if by_id:
        return FoundGpu((int(by_id.group(1), 16),))
    known = {" ".join(own): name for _, name, own in index}
    close = difflib.get_close_matches(" ".join(words), known, n=3, cutoff=0.5)
    if close:
        hint = f"Did you mean {', '.join(known[key] for key in close)}?"
    else:
        hint = f"Known GPUs include {', '.join(_one_each(catalog))}; or use a PCI ID: 10de:1eb8."
    return FoundGpu((), f"no GPU is called {text!r}. {hint}")


def find_distribution(catalog: DriverCatalog, text: str) -> str:
    """NVIDIA's code of a distribution, or of one with the same packages: `rhel7` for `centos7`,
    `rhel9` for `Rocky Linux 9`. Returns the text itself if no distribution matches."""
    named = _plain(text)
    for place in catalog.distributions:
        if named in map(_plain, (place.code, place.title, *place.also)):
            return place.code
    return text


def _plain(name: str) -> str:
    """`CentOS Stream 9` -> `centos9`; `Ubuntu 22.04` -> `ubuntu2204`."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "".join(word.replace("linux", "") for word in words if word != "stream")


def _one_each(catalog: DriverCatalog) -> list[str]:
    """One GPU of each generation."""
    names: dict[str, str] = {}
    for gpu in catalog.gpus.gpus:
        generation = catalog.generation(gpu.id)
        if generation:
            names.setdefault(generation.name, gpu.names[0])
    return list(names.values())


def _words(text: str) -> tuple[str, ...]:
    found = re.findall(r"[a-z0-9]+", text.lower())
    return tuple(word for word in found if word not in _MAKER_WORDS)
