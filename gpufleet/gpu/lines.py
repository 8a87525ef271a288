"""Layout and settings of a host's GPUs as one text, from which they are made again. Pure.

Example: `0-1: mig=1g.10gb:7 ecc=1; 2: stays=off power=300`. The words are those of LAYOUT_FILE,
with instances counted. `stays` has the layout of a GPU whose layout is not managed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from gpufleet.gpu.layouts import OFF, Layout, layout_text, mig_resource, parse_layout

STAYS = "stays"
WHOLE_GPU = "nvidia.com/gpu"
LINE_KEYS = ("mig", STAYS, "ecc", "power", "clocks", "memory", "compute")
_PART = re.compile(r"(?P<gpus>[\d,-]+):(?P<words>( [a-z]+=[\w.,:+-]+)*)", re.ASCII)
_RANGE = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?", re.ASCII)

Words = Mapping[str, str]  # key -> value, with a layout as in a text: 1g.10gb:7


def lines_text(gpus: Mapping[int, Words]) -> str:
    """The text of these GPUs, by index. Those with the same words are named together."""
    same: dict[str, list[int]] = {}
    for index, words in sorted(gpus.items()):
        shown = "".join(f" {key}={words[key]}" for key in LINE_KEYS if key in words)
        same.setdefault(shown, []).append(index)
    return "; ".join(f"{_indexes_text(indexes)}:{words}" for words, indexes in same.items())


def _indexes_text(indexes: list[int]) -> str:
    """[0, 1, 2, 5] -> 0-2,5"""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][-1] + 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ",".join("-".join(map(str, run)) for run in runs)


def parse_lines(text: str) -> dict[int, dict[str, str]]:
    """The words of each GPU, by index. Raises ValueError."""
    found: dict[int, dict[str, str]] = {}
    for part in text.split("; "):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"has {part!r}, not words of GPUs such as '0-1: mig=1g.10gb:7'")
        words = {key: value for key, _, value in (w.partition("=") for w in match["words"].split())}
        for key in ("mig", STAYS):
            parse_layout(words.get(key, OFF))
        if unknown := sorted(words.keys() - {*LINE_KEYS}):
            raise ValueError(f"has the unknown word {unknown[0]!r}")
        found |= dict.fromkeys(_indexes(match["gpus"]), words)
    return found


def _indexes(text: str) -> Iterator[int]:
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"has {text!r}, not indexes of GPUs such as 0-1,3")
        yield from range(int(match[1]), int(match[2] or match[1]) + 1)


def layout_word(layout: Layout) -> str:
    """A layout as a word: 3g.40gb:1,1g.10gb:4"""
    return layout_text(layout).replace(", ", ",")


def offered_resources(text: str) -> tuple[Mapping[str, int], ...]:
    """What a node with these GPUs may offer: by the MIG strategy `mixed`, and by `single` if its
    devices are uniform. Source: gpufleet/gpu_stack/node_sharing.py names the device plugin's."""
    layouts = [
        parse_layout(words.get("mig", words.get(STAYS, OFF)))
        for words in parse_lines(text).values()
    ]
    devices = [profile for layout in layouts for profile in layout]
    names = [mig_resource(profile) for profile in devices]
    mixed = Counter([*names, *(WHOLE_GPU for layout in layouts if not layout)])
    if devices and all(layouts) and len({*devices}) == 1:
        return mixed, {WHOLE_GPU: len(devices)}
    return (mixed,)
