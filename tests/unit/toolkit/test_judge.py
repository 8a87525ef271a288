"""NVIDIA's own `nvidia-ctk runtime configure` as a judge of our merges, on the golden cases.

Both configure the same file. The test compares the parsed values, not the text. DIFFERENCES lists
the deliberate differences with their reasons, and the test checks that each of them still exists.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from golden_cases import Case, cases

from gpufleet.core.merge import merge_mappings
from gpufleet.formats.edits import lookup_path
from gpufleet.node.catalog import load_catalog
from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.mirror.gotools import toolkit_programs
from gpufleet_sandbox.paths import cache_dir

pytestmark = pytest.mark.claim(
    "Our merge means what nvidia-ctk's means; the differences are listed.",
    level=1,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REFUSES = "nvidia-ctk refuses the file"
REPLACES = "nvidia-ctk replaces an entry of the user"
NULLED = "nvidia-ctk crashes on null for a table"
FORGETS_RUNC = "nvidia-ctk leaves runc out, which containerd 1.x then does not know any more"
DIFFERENCES = {
    "docker/cdi-switched-off": REPLACES,
    "docker/own-runtime-kept": REPLACES,
    "docker/nvidia-docker2": REPLACES,
    "docker/order-unicode-numbers": "nvidia-ctk rounds large numbers",
    "docker/empty-file": REFUSES,
    "docker/invalid": REFUSES,
    "docker/null": NULLED,
    "docker/null-edited-since": NULLED,
    "docker/not-an-object": REFUSES,
    "docker/duplicate-runtimes": "we do not guess which of two equal keys counts",
    "docker/runtimes-not-an-object": "nvidia-ctk replaces a value of a wrong type",
    "containerd/blank": FORGETS_RUNC,
    "containerd/v2-missing-file": FORGETS_RUNC,
    "containerd/v2-only-version": FORGETS_RUNC,
    "containerd/v1": "nvidia-ctk writes a drop-in that nothing imports, and keeps runc.v1",
    "containerd/v3-missing-file": "nvidia-ctk starts a new file with version 2, we with 3",
    "containerd/v5": REFUSES,
    "containerd/invalid": REFUSES,
    "containerd/operator-kept": REPLACES,
    "containerd/cgroup-mismatch": REPLACES,
    "containerd/cdi-switched-off": REPLACES,
    "containerd/kata-default": "nvidia-ctk gives runc the options of kata",
    "crio/adopted": "nvidia-ctk adds what crun has to an entry that is there",
    "crio/kept": REPLACES,
    "crio/elsewhere": "nvidia-ctk writes the runtime once more",
    "crio/invalid": "nvidia-ctk does not read its own drop-in",
}


@pytest.fixture(scope="session")
def nvidia_ctk() -> Path:
    """The real program at the catalog's newest version; built once, kept in the cache."""
    version = load_catalog().toolkit.newest
    try:
        return toolkit_programs(version, cache_dir(), print) / "nvidia-ctk"
    except (SandboxError, OSError) as error:
        pytest.skip(f"nvidia-ctk {version} cannot be built here: {error}")


def _configure(program: Path, case: Case, folder: Path) -> bool:
    """Run nvidia-ctk with the case's desired configuration. Return whether it succeeded."""
    main = folder / "main"
    text = case.settings.get("main", case.text("before"))
    if case.runtime == "crio":
        main.write_text("\n".join(_joined(case.settings["layers"])))
    elif text is not None:
        main.write_bytes(text.replace("/etc/containerd/conf.d", str(folder)).encode())
    command = [str(program), "--quiet", "runtime", "configure", f"--runtime={case.runtime}"]
    command += [f"--config={main}"]
    if case.runtime != "docker":
        command += [f"--drop-in-config={folder / '99-nvidia.toml'}"]
        command += ["--nvidia-runtime-path=/usr/bin/nvidia-container-runtime"]
    if case.desired.default:
        command += ["--set-as-default"]
    if case.desired.cdi:
        command += ["--cdi.enabled"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    return done.returncode == 0


def _joined(layers: list[str]) -> list[str]:
    """CRI-O's files as one, since nvidia-ctk reads only one."""
    whole: dict[str, Any] = {}
    for layer in layers:
        whole = merge_mappings(whole, tomllib.loads(layer))
    return [tomlkit.dumps(whole)]


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_bytes().decode()) if path.exists() else {}


def _meaning(runtime: str, config: dict[str, Any]) -> Any:
    """A configuration without entries that have no effect: zero values and `imports`."""
    plain: Any = _plain({key: value for key, value in config.items() if key != "imports"})
    if runtime == "docker":
        lookup_path(plain, ("runtimes", "nvidia"), {}).pop("args", None)
    return plain


def _plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _plain(item) for key, item in value.items()}
    return {key: item for key, item in inner.items() if item not in ("", 0, False, [], {})}


def _read(case: Case, text: str | None) -> dict[str, Any]:
    if case.runtime == "docker":
        data: dict[str, Any] = json.loads(text or "{}")
        return data
    outer = case.settings.get("main", "")
    if case.runtime == "crio":
        outer = "\n".join(_joined(case.settings["layers"]))
    return merge_mappings(tomllib.loads(outer), tomllib.loads(text or ""))


def _agree(case: Case, program: Path, folder: Path) -> bool:
    outcome = case.merge(case.text("before"))
    if not _configure(program, case, folder) or outcome.blocked:
        return False
    main = folder / "main"
    if case.runtime == "docker":
        theirs = json.loads(main.read_text()) if main.exists() else {}
    else:
        theirs = merge_mappings(_toml(main), _toml(folder / "99-nvidia.toml"))
    ours = _read(case, outcome.text)
    return bool(_meaning(case.runtime, ours) == _meaning(case.runtime, theirs))


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.runtime}-{case.folder.name}")
def test_nvidia_ctk_agrees(case: Case, nvidia_ctk: Path, tmp_path: Path) -> None:
    reason = DIFFERENCES.get(f"{case.runtime}/{case.folder.name}", "")
    assert _agree(case, nvidia_ctk, tmp_path) == (not reason), reason or "they should agree"


def test_every_difference_is_a_case() -> None:
    names = {f"{case.runtime}/{case.folder.name}" for case in cases()}
    assert DIFFERENCES.keys() <= names
