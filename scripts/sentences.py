"""The share of texts, by room, that have a mark of literal translation: a ratchet.

    python -m scripts.sentences          # prints the table; status 1 if a room is over its limit
    python -m scripts.sentences PATH...  # prints the marked texts of these files

Texts are docstrings and comments of Python files, and paragraphs of documents. sentences.yaml has
the marks and the limit of each room; a limit is lowered with each improvement and never raised.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
RULES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
MARKS = {name: re.compile(pattern, re.MULTILINE) for name, pattern in RULES["marks"].items()}
MIN_COMMENT_WORDS = 5
_FENCE = re.compile(r"^```.*?^```|<!-- .*?-->", re.DOTALL | re.MULTILINE)


def python_texts(source: str) -> Iterator[str]:
    """The docstrings, then the comments, of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and len(token.string.split()) >= MIN_COMMENT_WORDS:
            yield token.string.lstrip("# ")


def document_texts(source: str) -> Iterator[str]:
    """The paragraphs and rows of tables of a document, without blocks of code."""
    for block in _FENCE.sub("", source).split("\n\n"):
        yield from block.splitlines() if block.startswith("|") else [block]


def marked_texts(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Each text of a file, with the names of its marks."""
    texts = python_texts if path.suffix == ".py" else document_texts
    for text in filter(str.strip, texts(path.read_text("utf-8"))):
        yield text, [name for name, pattern in MARKS.items() if pattern.search(text)]


def room_of(name: str) -> str:
    """The first two folders of a path: gpufleet/driver, docs/how-to, tests/unit."""
    return "/".join(name.split("/")[:2]) if name.count("/") > 1 else name.split("/")[0]


def main(paths: list[str]) -> int:
    for path in paths:
        for text, names in marked_texts(Path(path)):
            if names:
                print(f"{path}: {', '.join(names)}\n    {' '.join(text.split())}")
    if paths:
        return 0
    words = ["git", "ls-files", *RULES["files"]]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    all_texts: Counter[str] = Counter()
    marked: Counter[str] = Counter()
    for name in listed.stdout.splitlines():
        for _, names in marked_texts(ROOT / name):
            all_texts[room_of(name)] += 1
            marked[room_of(name)] += bool(names)
    over = 0
    for room, count in sorted(all_texts.items()):
        share, limit = 100 * marked[room] / count, RULES["limit"]
        over += share > limit
        print(f"{share:5.1f} % of {count:5}  {room}{f'  over {limit} %' * (share > limit)}")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
