"""Names that grep finds: no public name of the product is declared twice, no function is a word."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS_OF_FINDINGS = {"blocker", "warning", "info", "check"}  # read as the kind that they declare
WORDS = {*KINDS_OF_FINDINGS, "main", "include"}  # the last one is for users' deploys, as pyinfra's
PER_ROLE = {"ROLE"}  # gpufleet/role/listing.py takes it from each room


def is_named_by_use(node: ast.AST) -> bool:
    """True for commands of click and fixtures of pytest: users read those names."""
    decorators = map(ast.unparse, getattr(node, "decorator_list", ()))
    return any(".command" in each or ".group" in each or ".fixture" in each for each in decorators)


def public_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Functions and classes, with their kind; constants, with their value as text."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if not is_named_by_use(node):
                yield node.name, type(node).__name__
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id.isupper():
                yield target.id, ast.dump(node.value)


def declared() -> dict[str, dict[str, str]]:
    """Name -> file -> what it declares."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted((ROOT / "gpufleet").rglob("*.py")):
        for name, what in public_names(ast.parse(path.read_text("utf-8"))):
            if not name.startswith("_"):
                found[name][path.relative_to(ROOT).as_posix()] = what
    return found


def test_no_public_name_is_declared_twice() -> None:
    twice = {
        name: sorted(places)
        for name, places in declared().items()
        if len(places) > 1 and name not in PER_ROLE
        and not (name.isupper() and len(set(places.values())) == 1)
    }  # fmt: skip
    assert twice == {}


def test_no_public_function_is_one_word() -> None:
    words = [
        f"{path}: {name}"
        for name, places in declared().items()
        for path, kind in places.items()
        if kind.endswith("FunctionDef") and "_" not in name and name not in WORDS
    ]
    assert words == []
