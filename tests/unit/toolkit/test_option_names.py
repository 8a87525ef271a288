"""Options of a containerd runtime whose names are in another case, as Kubespray wrote them.

kubernetes-sigs/kubespray#7523 (2026-11): systemdCgroup and binaryName.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.formats.edits import lookup_path
from gpufleet.toolkit.config.tables import parse_tables
from gpufleet.verify.runtimes import CheckedRuntime
from tests.unit.toolkit.runtime_result_setup import (
    BINARY,
    DEFAULT_FILE,
    NEW,
    OLD,
    SYSTEMD,
    binary,
    codes_of,
    host,
    only,
    planned,
    table,
    written,
)
from tests.unit.toolkit.toolkit_setup import CONFIG, carried_out, plan

LOWER_SYSTEMD = "systemdCgroup = true"
LOWER_RUNC = 'binaryName = "/usr/local/bin/runc"'
NVIDIA = ("containerd", "runtimes", "nvidia", "options")
FILES = [("1.7.24", "version = 2\n", OLD), ("2.2.1", DEFAULT_FILE, NEW)]


@pytest.mark.parametrize(("version", "head", "plugin"), FILES)
def test_the_binary_of_the_base_is_not_inherited(version: str, head: str, plugin: str) -> None:
    main = head + table(plugin, "runc", LOWER_SYSTEMD, LOWER_RUNC)
    facts = host(version, {CONFIG: main})
    done = plan(facts, cdi=False)
    options = lookup_path(parse_tables(written(done.runtimes[0])), ("plugins", plugin, *NVIDIA))
    assert options == {"systemdCgroup": True, "BinaryName": BINARY}
    assert planned(carried_out(facts, done), cdi=False).change is None


@pytest.mark.parametrize("name", ["BinaryName", "binaryName", "binaryname"])
@pytest.mark.parametrize("driver", [SYSTEMD, LOWER_SYSTEMD])
def test_an_entry_is_equal_in_any_spelling(name: str, driver: str) -> None:
    main = DEFAULT_FILE + table(NEW, "runc", LOWER_SYSTEMD, LOWER_RUNC)
    main += table(NEW, "nvidia", f'{name} = "{BINARY}"', driver)
    done = planned(host("2.2.1", {CONFIG: main}), cdi=False)
    assert (done.change, codes_of(done)) == (None, ["GF406"])


def test_other_values_are_still_reported() -> None:
    main = DEFAULT_FILE + table(NEW, "runc", SYSTEMD)
    wrong = main + table(NEW, "nvidia", LOWER_RUNC, SYSTEMD)
    done = planned(host("2.2.1", {CONFIG: wrong}), cdi=False)
    assert codes_of(done) == ["GF405"]
    assert "BinaryName is /usr/local/bin/runc, not" in only(done).message
    cgroupfs = main + table(NEW, "nvidia", binary(), "systemdCgroup = false")
    assert codes_of(planned(host("2.2.1", {CONFIG: cgroupfs}), cdi=False)) == ["GF422"]


def test_the_last_of_two_spellings_counts() -> None:
    main = DEFAULT_FILE + table(NEW, "nvidia", binary(), LOWER_RUNC)
    done = planned(host("2.2.1", {CONFIG: main}), cdi=False)
    assert codes_of(done) == ["GF405"]


def test_a_low_level_runtime_out_of_path_is_seen() -> None:
    main = DEFAULT_FILE + table(NEW, "runc", 'binaryName = "/opt/bin/runc"')
    facts = host("2.2.1", {CONFIG: main})
    lacking = replace(facts.runtimes["containerd"], runc_in_path=False)
    done = planned(replace(facts, runtimes={"containerd": lacking}), cdi=False)
    assert codes_of(done) == ["GF444"]


@pytest.mark.parametrize(
    ("options", "program"),
    [
        ({"binaryName": BINARY}, BINARY),
        ({"BinaryName": BINARY, "binaryName": "/usr/local/bin/runc"}, "/usr/local/bin/runc"),
        ({"SystemdCgroup": True}, None),
    ],
)
def test_the_checks_read_the_program_in_any_spelling(
    options: dict[str, Any], program: str | None
) -> None:
    entry = {"containerd": {"runtimes": {"nvidia": {"options": options}}}}
    there: Any = SimpleNamespace(_cri_tables=lambda: [entry["containerd"]], name="containerd")
    assert CheckedRuntime.nvidia_binary.fget(there) == program  # type: ignore[attr-defined]
