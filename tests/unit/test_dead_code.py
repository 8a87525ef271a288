"""The product itself uses all that it defines: nothing exists for tests alone."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gpufleet.core.findings import KNOWN_KINDS, Kind
from scripts.finding_codes import finding_modules

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("gpufleet", "roles", "deploys", "dashboards", "inventories", "sandbox",
           "tests/post_deploy")  # fmt: skip
SOURCES = (".py", ".j2", ".sh")
SANDBOX = ROOT / "sandbox"  # its library is for tests, too
CALLED_BY_OTHERS = {
    "ClusterConnector",  # an entry point in pyproject.toml
    "make_names_data",  # pyinfra, of a connector
    "execute",  # pyinfra, of a command
    "operation_host_start",  # pyinfra, of a callback handler
    "operation_host_success",
    "operation_host_error",
    "operation_start",
    "operation_end",
    "ssh_paramiko_connect_kwargs",  # pyinfra, of an inventory
    "_refresh_oidc",  # kubernetes, of a loader
    "ignore_aliases",  # PyYAML, of a dumper
    "redirect_request",  # urllib, of an opener
    "handle_error",  # socketserver, of a server
    "log_message",  # http.server, of a handler
    "on_broken_pipe",  # rich, of a console
    "on_config",  # mkdocs, of hooks
    "on_files",
    "on_page_markdown",
    "FIELDS",  # the tests of dashboards iterate over it
}


@cache
def sources() -> dict[Path, str]:
    """The product's own code by file, without the sandbox."""
    files = [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*"))]
    files += [ROOT / "config.py", *sorted((ROOT / "scripts").glob("*.py"))]
    return {path: path.read_text() for path in files if path.suffix in SOURCES}


@cache
def words() -> Counter[str]:
    """How often each word is in the product."""
    return Counter(word for text in sources().values() for word in re.findall(r"\w+", text))


def definitions(tree: ast.Module) -> Iterator[str]:
    """Names of functions, classes, methods and constants, unless a decorator registers them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kept = {"dataclass", "property", "cached_property", "classmethod", "staticmethod",
                    "cache", "lru_cache", "contextmanager", "wraps"}  # fmt: skip
            used = {n for d in node.decorator_list for n in re.findall(r"\w+", ast.unparse(d))}
            if not node.decorator_list or used & kept:
                yield node.name
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            yield from (name.id for name in statement.targets if isinstance(name, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id


def unused() -> list[str]:
    found = []
    for path, text in sources().items():
        if path.suffix != ".py" or SANDBOX in path.parents:
            continue
        for name in definitions(ast.parse(text)):
            if words()[name] < 2 and not name.startswith(("__", "test_", "pytest_")):
                found.append(f"{path.relative_to(ROOT)}: {name}")
    return [line for line in found if line.split(": ")[1] not in CALLED_BY_OTHERS]


def test_what_is_defined_is_used_by_the_product() -> None:
    assert unused() == []


def test_every_finding_is_raised_somewhere() -> None:
    names: dict[str, str] = {}
    for module in finding_modules():
        for name, value in vars(module).items():
            if isinstance(value, Kind):
                names[value.code] = name
    assert set(names) == set(KNOWN_KINDS)
    raised = {
        word
        for path, text in sources().items()
        if "findings" not in (path.stem, path.parent.name)
        for word in re.findall(r"\w+", text)
    }
    assert {code: name for code, name in names.items() if name not in raised} == {}
