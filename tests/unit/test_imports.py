"""Who may import whom: a rule that is broken names the file and the import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# folder or module -> module prefixes that it must not import
FORBIDDEN = {
    "gpufleet/plan": ("pyinfra", "gpufleet.operations", "gpufleet.sandbox", "roles", "deploys",
                      "paramiko", "socket", "subprocess", "urllib", "requests", "kubernetes"),
    "gpufleet/runtimes": ("pyinfra", "gpufleet.operations", "gpufleet.sandbox", "roles", "deploys",
                          "subprocess", "socket"),
    "gpufleet/catalog": ("pyinfra", "gpufleet.operations", "gpufleet.plan", "gpufleet.sandbox",
                         "roles", "deploys", "subprocess", "socket"),
    "gpufleet/settings": ("pyinfra", "gpufleet.operations", "gpufleet.plan", "gpufleet.sandbox",
                          "roles", "deploys"),
    "gpufleet/facts": ("pyinfra", "gpufleet.operations", "gpufleet.plan", "gpufleet.sandbox",
                       "roles", "deploys"),
    "gpufleet/operations": ("gpufleet.sandbox", "roles", "deploys"),
    "gpufleet/sandbox": ("gpufleet.operations", "gpufleet.plan", "roles", "deploys"),
    "roles": ("gpufleet.sandbox", "deploys"),
    "deploys": ("gpufleet.sandbox", "gpufleet.catalog"),
    "gpufleet": ("dashboards", "grafana_foundation_sdk", "matplotlib", "tests"),
    "dashboards": ("gpufleet", "roles", "deploys", "tests"),
    "tests/post_deploy": ("gpufleet.plan", "gpufleet.operations", "gpufleet.runtimes", "roles",
                          "deploys"),
}  # fmt: skip


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, as a dotted name; import_module("x") counts too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def broken_rules(root: Path) -> list[str]:
    found = []
    for folder, forbidden in FORBIDDEN.items():
        for path in sorted((root / folder).rglob("*.py")):
            found += [
                f"{path.relative_to(root)} imports {name}, which {folder} must not"
                for name in imports(path)
                if any(name == prefix or name.startswith(prefix + ".") for prefix in forbidden)
            ]
    return found


def test_nobody_imports_what_they_must_not() -> None:
    assert broken_rules(ROOT) == []


@pytest.mark.parametrize("folder", sorted(FORBIDDEN))
def test_the_rules_name_folders_that_exist(folder: str) -> None:
    assert list((ROOT / folder).rglob("*.py")), f"no Python file under {folder}"


@pytest.mark.parametrize(
    "line",
    ["import pyinfra", "from pyinfra import host", "from pyinfra.api import State",
     'import importlib\nimportlib.import_module("roles.container-toolkit.configure")'],
)  # fmt: skip
def test_a_broken_rule_is_found(tmp_path: Path, line: str) -> None:
    for folder in FORBIDDEN:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "gpufleet/plan/bad.py").write_text(line + "\n")
    assert broken_rules(tmp_path)
