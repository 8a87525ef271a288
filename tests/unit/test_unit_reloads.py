"""Only one function makes systemd reload its units: host/scripts/units.sh has the reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.host.shell import SHARED_FUNCTIONS

ROOT = Path(__file__).resolve().parents[2]
THE_ONE = ROOT / "gpufleet/host/scripts/units.sh"
# verbs after which systemctl makes systemd read every unit, unless it is run with --no-reload
VERBS = (
    "(?:re)?enable|disable|preset|preset-all|mask|unmask|link|revert|edit|add-wants|add-requires|"
    "set-default|set-property|switch-root"
)
RELOADS = re.compile(
    rf"\bdaemon-re(?:load|exec)\b|\bsystemctl\b[^|;&\n]*\s(?:{VERBS})\s|\binit q\b|"
    r"\bdeb-systemd-(?:helper|invoke)\b|\bupdate-rc\.d\b|\bchkconfig\b|\bsystemd-sysv-install\b"
)


def code_of_scripts(root: Path) -> Iterator[tuple[str, str]]:
    """Every script that runs on hosts, without comments."""
    for path in sorted([*root.glob("gpufleet/**/*.sh"), *root.glob("roles/**/*.sh")]):
        if path.name != THE_ONE.name:
            lines = path.read_text().splitlines()
            yield str(path.relative_to(root)), "\n".join(re.sub(r"(^|\s)#.*", "", x) for x in lines)


def words_of_operations(root: Path) -> Iterator[tuple[str, str]]:
    """Every string in Python except docstrings and findings, whose commands people run."""
    for path in sorted([*root.glob("gpufleet/**/*.py"), *root.glob("roles/**/*.py")]):
        if "findings" in path.relative_to(root).as_posix():
            continue
        tree = ast.parse(path.read_text())
        statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in statements:
                yield str(path.relative_to(root)), text


def reloading(root: Path) -> list[str]:
    texts = [*code_of_scripts(root), *words_of_operations(root)]
    return [
        f"{path}: {found[0]}" for path, text in texts for found in RELOADS.finditer(text + "\n")
    ]


def test_nothing_else_reloads_systemd() -> None:
    assert reloading(ROOT) == []


@pytest.mark.parametrize(
    "line",
    [
        "systemctl daemon-reload", "systemctl -q enable --now x.service", "systemctl disable -q x",
        "deb-systemd-invoke restart docker", "systemctl mask x.service",
    ],
)  # fmt: skip
def test_another_reload_is_found(tmp_path: Path, line: str) -> None:
    script = tmp_path / "gpufleet/x/scripts/x.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f"# x.sh\nif true; then {line}; fi\n")
    (tmp_path / "gpufleet/x/y.py").write_text(f'run = command("{line}")\n')
    assert len(reloading(tmp_path)) == 2


@pytest.mark.parametrize("functions", ["host/gpu_work", "host/units"])
def test_scripts_have_the_functions_that_they_call(functions: str) -> None:
    room, name = functions.split("/")
    shared = ROOT / "gpufleet" / room / f"scripts/{name}.sh"
    names = re.findall(r"^([a-z_]+)\(\)", shared.read_text(), re.MULTILINE)
    call = re.compile(rf"\b(?:{'|'.join(names)})\b")
    users = {
        f"{Path(path).parts[1]}/{Path(path).stem}"
        for path, text in code_of_scripts(ROOT)
        if call.search(text) and Path(path).stem not in ("gpu_work", "units")
    }
    assert users <= set(SHARED_FUNCTIONS[functions])
