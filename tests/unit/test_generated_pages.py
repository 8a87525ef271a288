"""Generated documentation is up to date, and each finding's entry explains the finding."""

from __future__ import annotations

import re
from pathlib import Path

from gpufleet.core.findings import KNOWN_KINDS
from scripts.draw_rooms import drawing, imported_rooms
from scripts.finding_codes import finding_modules
from scripts.generate_docs import pages

ROOT = Path(__file__).resolve().parents[2]
finding_modules()
PLACEHOLDER = re.compile(r"\{\w+(![rs])?(:\w+)?\}")
NAMES = {"containerd", "containerd's", "docker", "dockerd", "gpufleet", "helm", "initramfs",
         "kubectl", "kubelet", "modprobe", "nouveau", "nvidia", "pyinfra", "su"}  # fmt: skip
LEAST = 2  # words; a text with fewer explains nothing


def words(text: str) -> list[str]:
    """The words of a format string without its placeholders, and without Expected and found."""
    return [word for word in re.findall(r"[A-Za-z]+", PLACEHOLDER.sub("", text))
            if word not in ("Expected", "found")]  # fmt: skip


def test_generated_pages_are_up_to_date() -> None:
    stale = [path.name for path, text in pages().items() if path.read_text() != text]
    assert stale == [], "run make docs"


def test_an_entry_is_more_than_placeholders_and_in_sentence_case() -> None:
    for code, kind in KNOWN_KINDS.items():
        assert len(words(kind.description or kind.message)) >= LEAST, code
        assert words(kind.advice or kind.remedy), code
        for text in (kind.title, kind.message, kind.remedy, kind.description, kind.advice):
            first = text.split(maxsplit=1)[0] if text else ""
            assert not first.rstrip(",").isalpha() or first[0].isupper() or first in NAMES, text
        assert kind.title[-1] not in ".:", "a title is not a sentence"


def test_the_drawing_has_the_imports(tmp_path: Path) -> None:
    for room, text in {
        "core": "",
        "low": "from gpufleet.core import data\n",
        "middle": "from gpufleet.low.data import THING\n",
        "high": "import gpufleet.middle.plan\nfrom gpufleet.low import data\n",
    }.items():
        folder = tmp_path / "gpufleet" / room
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(text)
    assert imported_rooms(tmp_path) == {
        "core": set(), "low": set(), "middle": {"low"}, "high": {"middle", "low"}
    }  # fmt: skip
    arrows = [line.strip() for line in drawing(tmp_path).splitlines() if "-->" in line]
    assert arrows == ["high --> middle", "middle --> low"]
