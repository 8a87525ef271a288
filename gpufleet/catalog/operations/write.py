"""Writes the gaps of the catalog as a patch of its data files."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

from gpufleet.catalog.models import Gap
from gpufleet.catalog.patch import NoPlace, apply_edits, path_of_file, unified_patch


def make_patch(gaps: Iterable[Gap]) -> tuple[str, list[Gap]]:
    """The patch of the shipped data files, and the gaps that it closes."""
    texts: dict[str, str] = {}
    before: dict[str, str] = {}
    closed = []
    for gap in gaps:
        new = dict(texts)
        try:
            for edit in gap.edits:
                text = new.get(edit.file) or _shipped_text(edit.file)
                before.setdefault(edit.file, text)
                new[edit.file] = apply_edits(text, [edit])
        except NoPlace:  # an entry of catalog.d, or without the key
            continue
        texts = new
        closed += [gap] if gap.edits else []
    changed = {path_of_file(name): (before[name], text) for name, text in texts.items()}
    return unified_patch(changed), closed


def _shipped_text(name: str) -> str:
    room, _, stem = name.partition("/")
    path = resources.files("gpufleet").joinpath(f"{room}/data/{stem}.yaml")
    return path.read_text("utf-8")
