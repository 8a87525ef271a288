"""Whole default files as the programs print them: `containerd config default`, in `defaults/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.formats.edits import lookup_path
from gpufleet.toolkit.config import containerd_layers
from gpufleet.toolkit.config.layers import RUNTIME_PLACES
from tests.unit.toolkit.runtime_removal_plan_setup import edited, provisioned, removal
from tests.unit.toolkit.runtime_result_setup import codes_of, planned
from tests.unit.toolkit.toolkit_setup import CONFIG, containerd_host

FILES = sorted((Path(__file__).parent / "defaults").glob("containerd-*.toml"))
NVIDIA = (*RUNTIME_PLACES["containerd"].runtimes, "nvidia")
RUNC = (*RUNTIME_PLACES["containerd"].runtimes, "runc")
DRIVER = ("options", "SystemdCgroup")

every_version = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def version(file: Path) -> str:
    return file.stem.partition("-")[2]


def kubernetes_step(file: Path) -> str:
    """The step of the Kubernetes guide: `SystemdCgroup = true`."""
    return file.read_text().replace("SystemdCgroup = false", "SystemdCgroup = true")


def newest(file: Path) -> int:
    number = [int(part) for part in version(file).split(".")]
    return 2 if number[0] == 1 else 4 if number >= [2, 3] else 3


def table(texts: dict[str, str], file: Path) -> object:
    deep = newest(file) > 2
    return containerd_layers.read_containerd_layers(texts, CONFIG, deep, newest(file)).table


def test_there_is_a_file_of_each_line() -> None:
    lines = {version(file).rpartition(".")[0] for file in FILES}
    assert lines >= {"1.6", "1.7", "2.0", "2.2", "2.3", "2.4"}


@every_version
@pytest.mark.parametrize("default", [False, True])
def test_nvidia_has_what_runc_has(file: Path, default: bool) -> None:
    facts = containerd_host(kubernetes_step(file), version(file))
    done = planned(facts, default_runtime=default)
    assert set(codes_of(done)) <= {"GF408", "GF415"}  # 1.7 prints `enable_cdi = false`
    after = provisioned(facts, default_runtime=default)
    found = table(after.texts, file)
    ours, base = lookup_path(found, NVIDIA), lookup_path(found, RUNC)
    assert lookup_path(ours, DRIVER) is True
    assert lookup_path(base, DRIVER) is True
    assert lookup_path(found, RUNTIME_PLACES["containerd"].default) == (
        "nvidia" if default else "runc"
    )
    assert planned(after, default_runtime=default).change is None
    undone = removal(after)
    assert undone.change is not None
    texts = after.texts | {undone.change.path: undone.change.after}
    assert texts[CONFIG] == facts.texts[CONFIG]


@every_version
def test_the_users_own_nvidia_is_seen(file: Path) -> None:
    text = kubernetes_step(file)
    name = containerd_layers.plugin_of(text, newest(file))
    entry = (
        f"[plugins.'{name}'.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n"
    )
    options = entry.partition("]")[0] + ".options]\nBinaryName = '/opt/nvidia-container-runtime'\n"
    facts = edited(containerd_host(text, version(file)), CONFIG, text + entry + options)
    done = planned(facts, cdi=False)
    assert (done.change, codes_of(done)) == (None, ["GF405"])
    assert "options.SystemdCgroup is not set, not true" in done.findings[0].message
