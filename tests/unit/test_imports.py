"""The modules that may import one another. A failure names the file and the import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.core.node_roles import NODE_ROLES

pytestmark = pytest.mark.claim("Imports follow the design.", level=1)

ROOT = Path(__file__).resolve().parents[2]

# room -> the rooms that it may import besides core, in order: a room may only name earlier ones
ROOMS: dict[str, tuple[str, ...]] = {
    "core": (),
    "run": (),
    "facts": (),
    "combinations": ("facts",),
    "host": ("run", "facts"),
    "packages": ("run", "facts", "host"),
    "role": ("facts", "combinations", "host", "packages"),
    "driver": ("facts", "combinations", "host", "packages", "role"),
    "gpu": ("facts", "host", "packages", "role", "driver"),
    "formats": (),
    "containerd": ("facts", "host", "packages", "role"),
    "toolkit": ("formats", "facts", "host", "packages", "role", "driver"),
    "exporter": ("facts", "host", "packages", "role", "driver", "toolkit"),
    "kube": ("run", "host"),
    "kubernetes": ("run", "formats", "facts", "host", "packages", "role", "toolkit", "kube"),
    "helm": ("packages", "kube"),
    "monitoring": ("host", "exporter", "kube", "helm"),
    "gpu_stack": (
        "run",
        "combinations",
        "host",
        "role",
        "driver",
        "gpu",
        "toolkit",
        "exporter",
        "kube",
        "helm",
        "monitoring",
    ),
    "gitops": ("run", "kube", "helm", "monitoring", "gpu_stack"),
    "node": (
        "run",
        "facts",
        "combinations",
        "host",
        "packages",
        "role",
        "driver",
        "containerd",
        "toolkit",
        "exporter",
        "kube",
        "kubernetes",
        "gpu_stack",
    ),
    "drain": ("host", "kube"),
    "upgrade": (
        "run",
        "facts",
        "host",
        "packages",
        "role",
        "driver",
        "gpu",
        "toolkit",
        "kube",
        "node",
        "drain",
    ),
    "status": (
        "facts",
        "combinations",
        "host",
        "packages",
        "role",
        "driver",
        "toolkit",
        "exporter",
        "helm",
        "monitoring",
        "gpu_stack",
        "node",
        "upgrade",
    ),
    "catalog": (
        "packages",
        "driver",
        "toolkit",
        "containerd",
        "helm",
        "node",
        "status",
    ),
    "evidence": ("facts", "host", "kube", "gpu_stack"),
    "doctor": ("facts", "host", "driver", "kube", "helm", "monitoring", "node", "status"),
    "bundle": (
        "run",
        "facts",
        "host",
        "packages",
        "role",
        "containerd",
        "kube",
        "kubernetes",
        "helm",
        "gpu_stack",
        "node",
    ),
    "verify": (),
    "cli": (
        "run",
        "facts",
        "host",
        "packages",
        "driver",
        "toolkit",
        "exporter",
        "kube",
        "kubernetes",
        "helm",
        "monitoring",
        "gpu_stack",
        "gitops",
        "node",
        "upgrade",
        "status",
        "catalog",
        "doctor",
        "evidence",
        "bundle",
        "verify",
    ),
}
# a node's role that is not in the table may import the rooms that every role may import
ROOMS |= {role: ("facts", "host", "packages", "role") for role in NODE_ROLES if role not in ROOMS}
SHELL = ("pyinfra", "gevent", "paramiko", "socket", "subprocess", "urllib.request", "requests",
         "kubernetes", "testinfra", "pytest")  # fmt: skip
SHELL_ROOMS = ("run", "host", "verify", "cli")  # the others: in `operations` alone
PURE_OF_THEM = ("gpufleet.host.file_write", "gpufleet.host.settings", "gpufleet.host.notices",
                "gpufleet.host.upgrade_settings", "gpufleet.host.upgrade_state",
                "gpufleet.host.window")  # fmt: skip
DATA_OF_ROLES = ("gpufleet.node.catalog",)  # the type that combines all catalog data
IMPURE_ELSEWHERE = ("gpufleet.kube.kubeconfig", "gpufleet.core.process")  # the checks use both
# Code that the checks share with the deploys: it reads groups, files and data of the catalog, and
# has the texts of findings.
SHARED = ("gpufleet.core", "gpufleet.verify", "gpufleet.kube.kubeconfig",
          "gpufleet.kube.prometheus", "gpufleet.run.report_file",
          "gpufleet.helm.chart_choice")  # fmt: skip

# folder -> prefixes of modules that it must not import
FORBIDDEN = {
    "gpufleet": ("gpufleet_sandbox", "roles", "gpufleet.roles", "deploys", "dashboards",
                 "grafana_foundation_sdk", "matplotlib", "tests"),
    "sandbox": ("roles", "gpufleet.roles", "deploys", "tests", "gpufleet.run", "gpufleet.host",
                "gpufleet.node.operations", "gpufleet.node.plan", "gpufleet.node.settings",
                "gpufleet.helm", "gpufleet.kube", "gpufleet.gpu_stack", "gpufleet.monitoring"),
    "roles": ("gpufleet_sandbox", "deploys", "tests"),
    "deploys": ("gpufleet_sandbox", "tests"),
    "dashboards": ("gpufleet", "gpufleet_sandbox", "roles", "deploys", "tests"),
    "tests/post_deploy": ("gpufleet_sandbox", "roles", "gpufleet.roles", "deploys"),
}  # fmt: skip


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, as a dotted name; import_module("x") counts too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def is_of(name: str, *prefixes: str) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def modules(root: Path) -> Iterator[tuple[str, str, Path]]:
    """Room, dotted name and path of every module in a room."""
    for path in sorted((root / "gpufleet").glob("*/**/*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        yield parts[1], ".".join(parts).removesuffix(".__init__"), path


def test_the_page_of_the_architecture_lists_every_room() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text()
    assert [room for room in ROOMS if f"| `{room}` |" not in page] == []


def room_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "gpufleet" and len(parts) > 2 else None


def is_findings(name: str) -> bool:
    return "findings" in name.split(".")


def is_shell(room: str | None, name: str) -> bool:
    """Whether a module of that name may talk to hosts, clusters and programs."""
    if is_findings(name) or is_of(name, *PURE_OF_THEM):
        return False
    elsewhere = "operations" in name.split(".") or is_of(name, *IMPURE_ELSEWHERE)
    return room in SHELL_ROOMS or elsewhere


def upward(root: Path) -> set[tuple[str, str]]:
    """Imports of a room that it may not import, as (importer, imported module)."""
    known = {name for _, name, _ in modules(root)}
    found = set()
    for room, name, path in modules(root):
        for imported in imports(path):
            other = room_of(imported)
            if other in (None, room, "core") or other in ROOMS.get(room, ()):
                continue
            module = imported if imported in known else imported.rpartition(".")[0]
            if not (room == "verify" and (is_findings(module) or is_of(module, *SHARED))):
                found.add((name, module))
    return found


def roles_named(root: Path) -> set[tuple[str, str]]:
    """Imports of a role's room by the core of a node, which knows the roles as a list."""
    return {
        (name, imported)
        for room, name, path in modules(root)
        if room in ("role", "node") and name not in DATA_OF_ROLES
        for imported in imports(path)
        if is_of(imported, *(f"gpufleet.{role}" for role in NODE_ROLES))
    }


def impure(root: Path) -> list[str]:
    """Modules of decisions that use the network or programs, or import a module that does."""
    return [
        f"{name} decides and imports {imported}, which does things"
        for room, name, path in modules(root)
        if not is_shell(room, name)
        for imported in imports(path)
        if is_of(imported, *SHELL) or is_shell(room_of(imported), imported)
    ]


def forbidden(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)} imports {name}, which {folder} must not"
        for folder, prefixes in FORBIDDEN.items()
        for path in sorted((root / folder).rglob("*.py"))
        for name in imports(path)
        if is_of(name, *prefixes)
    ]


def checks_that_share(root: Path) -> list[str]:
    """Imports of the checks that are not in SHARED: code of the deploys that they would rely on."""
    return [
        f"{path.relative_to(root)} imports {name}"
        for path in sorted((root / "tests/post_deploy").glob("*.py"))
        for name in imports(path)
        if room_of(name) and not is_findings(name) and not is_of(name, *SHARED)
    ]


def test_rooms_import_downwards() -> None:
    assert sorted(upward(ROOT)) == []


def test_the_core_of_a_node_names_no_role() -> None:
    assert roles_named(ROOT) == set()


def test_a_role_that_the_core_names_is_found(tmp_path: Path) -> None:
    room = tmp_path / "gpufleet/node"
    room.mkdir(parents=True)
    (room / "plan.py").write_text("from gpufleet.driver.plan import DriverPlan\n")
    assert roles_named(tmp_path)


def test_the_rooms_are_those_that_exist() -> None:
    assert {room for room, _, _ in modules(ROOT)} == set(ROOMS)
    for number, (room, below) in enumerate(ROOMS.items()):
        assert set(below) <= set(list(ROOMS)[:number]), room


def test_decisions_are_pure() -> None:
    assert impure(ROOT) == []


def test_nobody_imports_what_they_must_not() -> None:
    assert forbidden(ROOT) == []


def test_checks_share_nothing_with_what_installs() -> None:
    assert checks_that_share(ROOT) == []


@pytest.mark.parametrize("folder", sorted(FORBIDDEN))
def test_the_rules_name_folders_that_exist(folder: str) -> None:
    assert list((ROOT / folder).rglob("*.py")), f"no Python file under {folder}"


@pytest.mark.parametrize(
    "line",
    ["import pyinfra", "from pyinfra import host", "from pyinfra.api import State",
     "from gpufleet.driver.operations import load_modules",
     "from gpufleet.host.shell import script_command"],
)  # fmt: skip
def test_an_impure_decision_is_found(tmp_path: Path, line: str) -> None:
    room = tmp_path / "gpufleet/driver"
    room.mkdir(parents=True)
    (room / "plan.py").write_text("from gpufleet.host import findings\n")
    assert impure(tmp_path) == []
    (room / "plan.py").write_text(line + "\n")
    assert impure(tmp_path)
    (room / "plan.py").rename(room / "operations.py")
    assert impure(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("gpufleet/core/bad.py", "from gpufleet.driver import plan"),
        ("gpufleet/driver/bad.py", "from gpufleet.toolkit.plan import plan_toolkit"),
        ("gpufleet/verify/bad.py", "from gpufleet.driver.plan import plan_driver"),
    ],
)
def test_an_import_that_runs_upwards_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert upward(tmp_path)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("gpufleet/driver/bad.py", "from gpufleet_sandbox import Sandbox"),
        ("gpufleet/driver/bad.py", "from gpufleet.roles.driver.install import install"),
        ("roles/driver/bad.py", 'import importlib\nimportlib.import_module("deploys.gpu_node")'),
        ("sandbox/gpufleet_sandbox/bad.py", "from gpufleet.node.operations.node import Node"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert forbidden(tmp_path)


def test_a_check_that_shares_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "tests/post_deploy"
    folder.mkdir(parents=True)
    (folder / "test_bad.py").write_text("from gpufleet.driver.plan import plan_driver\n")
    assert checks_that_share(tmp_path)
