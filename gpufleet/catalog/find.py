"""Finds GPUs by what a person types: a name, part of a name, or a PCI device id."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from gpufleet.catalog.models import Catalog, Gpu

_MAKER_WORDS = {"nvidia", "tesla", "quadro", "geforce"}


@dataclass(frozen=True, slots=True)
class Found:
    """PCI device ids that the text means; when there are none, or too many sorts, `problem`."""

    devices: tuple[int, ...]
    problem: str = ""


def find_gpu(catalog: Catalog, text: str) -> Found:
    """The GPU that `text` means. A name that fits several boards of one generation is enough."""
    by_id = re.fullmatch(r"(?:10de:|0x)?([0-9a-f]{4})", text.strip().lower())
    words = _words(text)
    index = [(gpu, name, _words(name)) for gpu in catalog.gpus.gpus for name in gpu.names]
    exact = [(gpu, name) for gpu, name, own in index if own == words]
    loose = [(gpu, name) for gpu, name, own in index if set(words) <= set(own)]
    matches = exact or loose
    if matches and words:
        return _one_sort(catalog, text, matches)
    if by_id:
        return Found((int(by_id.group(1), 16),))
    known = {" ".join(own): name for _, name, own in index}
    close = difflib.get_close_matches(" ".join(words), known, n=3, cutoff=0.5)
    hint = f" Did you mean {', '.join(known[key] for key in close)}?" if close else ""
    return Found((), f"no GPU is called {text!r}.{hint}")


def _words(text: str) -> tuple[str, ...]:
    found = re.findall(r"[a-z0-9]+", text.lower())
    return tuple(word for word in found if word not in _MAKER_WORDS)


def _one_sort(catalog: Catalog, text: str, matches: list[tuple[Gpu, str]]) -> Found:
    generations = {catalog.generation(gpu.id) for gpu, _ in matches}
    if len(generations) == 1:
        return Found((min(gpu.id for gpu, _ in matches),))
    listed = ", ".join(sorted({name for _, name in matches}))
    return Found((), f"{text!r} fits GPUs of several generations: {listed}.")
