"""The output of real tools, as the checks parse it."""

from __future__ import annotations

import pytest

from gpufleet.verify.parse import (
    dkms_states,
    dpkg_packages,
    has_key,
    is_locked,
    listening_addresses,
    lock_lines,
    parse_units,
    rpm_packages,
    split_dotted_key,
)
from gpufleet.verify.probe import Output, parse_sections

YUM_LOCK = "3:nvidia-driver-latest-dkms-550.163.01-1.el7.*"
DNF_LOCK = "nvidia-driver-3:580.95.05-1.el9.*"
DNF5_LOCK = """\
version = "1.0"
[[packages]]
name = "nvidia-driver"
[[packages.conditions]]
key = "evr"
comparator = "="
value = "3:580.95.05-1.fc41"
"""


def test_dpkg_states() -> None:
    text = (
        "a\t1:2-3\tamd64\thold ok installed\n"
        "b\t1\tall\tinstall ok half-configured\n"
        "c\t1\tall\tinstall reinstreq installed\n"
        "d\t1\tall\tdeinstall ok config-files\n"
        "dpkg-query: warning\n"
    )
    packages = dpkg_packages(text)
    assert {name: (p.held, p.whole) for name, p in packages.items()} == {
        "a": (True, True),
        "b": (False, False),
        "c": (False, False),
    }
    assert packages["a"].upstream == "2"


@pytest.mark.parametrize(
    ("name", "version", "upstream", "driver"),
    [
        ("libnvidia-compute-580", "580.95.05-0ubuntu1", "580.95.05", True),
        ("nvidia-driver", "3:580.95.05-1.el9", "580.95.05", True),
        ("nvidia-container-toolkit", "1.17.8-1", "1.17.8", False),
        ("linux-objects", "580.95.05-6.8.0-1", "580.95.05-6.8.0", False),
        ("linux", "580.95.05-1", "580.95.05", False),
    ],
)
def test_packages_of_the_driver(name: str, version: str, upstream: str, driver: bool) -> None:
    found = dpkg_packages(f"{name}\t{version}\tamd64\tinstall ok installed")[name]
    assert (found.upstream, found.is_driver) == (upstream, driver)


@pytest.mark.parametrize(
    ("lock", "version", "held"),
    [
        (YUM_LOCK, "3:550.163.01-1.el7", True),
        (YUM_LOCK, "3:550.144.03-1.el7", False),
        ("nvidia-driver-latest-dkms-3:550.163.01-1.el7.*", "3:550.163.01-1.el7", True),
        ("nvidia-driver-latest-dkms-550.163.01-*", "3:550.163.01-1.el7", True),
        ("0:nvidia-driver-latest-dkms-550.163.01-1.el7.*", "(none):550.163.01-1.el7", True),
        ("nvidia-driver-latest-dkms-3:550.163.01-1.el7.x86_64", "3:550.163.01-1.el7", True),
        ("nvidia-driver-latest-dkms-3:550.163.01-1.el7.i686", "3:550.163.01-1.el7", False),
    ],
)
def test_rpm_is_held_by_its_very_version(lock: str, version: str, held: bool) -> None:
    text = f"nvidia-driver-latest-dkms\t{version}\tx86_64"
    assert rpm_packages(text, [lock])["nvidia-driver-latest-dkms"].held is held


def test_lock_list_without_comments_and_exclusions() -> None:
    assert lock_lines(f"# Added lock on …\n{DNF_LOCK}\n!bad-1-1.*\n\n") == [DNF_LOCK]


def test_lock_list_of_dnf5() -> None:
    (entry,) = lock_lines(DNF5_LOCK)
    assert is_locked(entry, "nvidia-driver", "3:580.95.05-1.fc41", "x86_64")
    assert not is_locked(entry, "nvidia-driver", "3:580.95.06-1.fc41", "x86_64")


@pytest.mark.parametrize(
    ("line", "states"),
    [
        ("nvidia/580.95.05, 6.1.0, x86_64: installed", {"580.95.05": "installed"}),
        ("nvidia, 550.163.01, 6.1.0, x86_64: installed", {"550.163.01": "installed"}),
        ("nvidia-current/535.309.01, 6.1.0, x86_64: built", {"535.309.01": "built"}),
        ("nvidia/580.95.05, 5.10.0, x86_64: installed", {}),
        ("nvidia/580.95.05: added", {"580.95.05": "added"}),
        ("zfs/2.1, 6.1.0, x86_64: installed", {}),
        ("nvidia/580.95.05: added\nnvidia/580.95.05, 6.1.0, x86_64: installed",
         {"580.95.05": "installed"}),
    ],
)  # fmt: skip
def test_dkms_status(line: str, states: dict[str, str]) -> None:
    assert dkms_states(line, "6.1.0") == states


def test_units() -> None:
    text = "Id=a.service\nActiveState=active\n\nId=b.service\nActiveState=failed\n"
    assert {name: u["ActiveState"] for name, u in parse_units(text).items()} == {
        "a.service": "active",
        "b.service": "failed",
    }
    assert parse_units("Id=a.service\nExecStart=/x --a=b")["a.service"]["ExecStart"] == "/x --a=b"


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("features.buildkit", True),
        ("features.cdi", False),
        ('plugins."io.containerd.grpc.v1.cri".sandbox_image', True),
        ("plugins.io.containerd.grpc.v1.cri.sandbox_image", True),
        ("plugins.io.containerd.grpc.v1.cri.other", False),
        ("registry-mirrors", True),
        ("registry-mirrors.x", False),
    ],
)
def test_dotted_keys(path: str, there: bool) -> None:
    tree = {
        "features": {"buildkit": False},
        "registry-mirrors": ["x"],
        "plugins": {"io.containerd.grpc.v1.cri": {"sandbox_image": "pause"}},
    }
    assert has_key(tree, split_dotted_key(path)) is there


def test_sections_keep_text_and_status() -> None:
    text = "noise\n\n@@1 begin a b\nx\n\n@@2 end 0\ny\n@@1 end 7\n\n@@1 begin c\n\n@@1 end 0\n"
    assert parse_sections(text, "@@1") == {
        "a b": Output(7, "x\n\n@@2 end 0\ny"),
        "c": Output(0, ""),
    }


def test_listening_addresses() -> None:
    text = "0100007F:24B8\n00000000:0016\n00000000000000000000000001000000:0016\n"
    assert listening_addresses(text) == {("127.0.0.1", "9400"), ("0.0.0.0", "22"), ("::1", "22")}
    assert listening_addresses("") == set()
