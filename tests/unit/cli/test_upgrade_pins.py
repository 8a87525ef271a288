"""The lines of an inventory that ask for another version than a run installs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.host.upgrade_state import HostState
from gpufleet.upgrade.inventory_lines import (
    PINS_HEAD,
    UNSET_HEAD,
    lines_to_change,
    targets_in,
    targets_there,
)
from gpufleet.upgrade.models import LeftOut
from gpufleet.upgrade.subjects import WantedChange

OLD, NEW, OTHER = "580.159.03", "580.178.04", "595.91.07"


class Inventory:
    """The methods of pyinfra's Inventory that the code calls."""

    own: Mapping[str, Any] = {"d": {"driver_version": OLD}}
    groups: Mapping[str, Any] = {
        "all": {"toolkit_version": "1.19.1"},
        "train": {"driver_version": OLD},
        "infer": {"driver_branch": "580"},
    }
    members: Mapping[str, str] = {"a": "train", "b": "train", "c": "infer", "d": "infer"}

    def get_host_data(self, name: str) -> Mapping[str, Any]:
        return self.own.get(name, {})

    def get_group_data(self, name: str) -> Mapping[str, Any]:
        return self.groups.get(name, {})

    def get_host(self, name: str) -> Any:
        groups = ["gpu_nodes", *([self.members[name]] if name in self.members else [])]
        data: dict[str, Any] = {}
        for group in ("all", *groups):
            data |= self.get_group_data(group)
        data |= self.get_host_data(name)
        return SimpleNamespace(groups=groups, data=SimpleNamespace(dict=lambda: data))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data/train.py").write_text(f'driver_version = "{OLD}"\n')
    (tmp_path / "group_data/all.py").write_text('toolkit_version = "1.19.1"\n')
    return tmp_path


def lines(folder: Path, subject: str, *hosts: str, after: str) -> list[str]:
    moves = dict.fromkeys(hosts, (OLD, after))
    found = lines_to_change(Inventory(), str(folder / "prod.py"), subject, moves)
    return [line.replace(f"{folder}/", "") for line in found if line != PINS_HEAD]


def test_nothing_is_said_of_an_inventory_that_agrees(folder: Path) -> None:
    assert lines(folder, "driver", *"abcde", after=OLD) == []
    assert lines(folder, "driver", "c", "e", after=NEW) == []
    assert lines(folder, "toolkit", "a", after="1.19.1") == []


def test_a_line_names_its_file_and_its_hosts(folder: Path) -> None:
    assert lines(folder, "driver", *"abcd", after=NEW) == [
        f"  group_data/train.py: driver_version = \"{NEW}\"  # now '{OLD}': a, b",
        f"  prod.py: driver_version = \"{NEW}\"  # now '{OLD}': d",
    ]
    assert lines(folder, "toolkit", "a", after="1.20.1") == [
        "  group_data/all.py: toolkit_version = \"1.20.1\"  # now '1.19.1': a"
    ]


def test_a_file_that_only_mentions_the_key_does_not_set_it(folder: Path) -> None:
    (folder / "group_data/train.py").write_text("# no driver_version here\ndriver_versions = 1\n")
    (line, *_) = lines(folder, "driver", "a", "b", after=NEW)
    assert line.startswith("  prod.py, group train: driver_version")


def test_another_branch_needs_its_key(folder: Path) -> None:
    assert lines(folder, "driver", "c", "e", after=OTHER) == [
        "  prod.py, group infer: driver_branch = \"595\"  # now '580': c",
        UNSET_HEAD,  # a plan does not report it: the installed driver is kept
        '  prod.py: driver_branch = "595"  # now not set: e',
    ]


def test_hosts_that_had_the_version_count_too() -> None:
    state = HostState("r", "upgrade", "driver", OLD, NEW, "g", 0)
    reboot = HostState("r", "upgrade", "reboot", OLD, OLD, "g", 0)
    assert targets_in({"a": state}) == {"a": (OLD, NEW)}
    assert targets_in({"a": reboot}) == {}
    left = [LeftOut("b", f"already at {NEW}"), LeftOut("c", "no GPU")]
    assert targets_there(left, WantedChange(version=NEW)) == {"b": (NEW, NEW)}
    assert targets_there(left, WantedChange()) == {}
