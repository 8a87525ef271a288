"""The keys gpu_*: how layouts and clocks may be written, and which keys contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.gpu.role import ROLE
from gpufleet.node.settings import load_node_settings

SEVEN = ("1g.10gb",) * 7


@pytest.mark.parametrize(
    ("written", "layouts"),
    [
        ("1g.10gb:7", {"all": SEVEN}),
        ("1g.10gb, 3g.40gb", {"all": ("3g.40gb", "1g.10gb")}),
        (["3g.40gb", "1g.10gb:2"], {"all": ("3g.40gb", "1g.10gb", "1g.10gb")}),
        ({0: "off", "all": ["1g.10gb:7"]}, {"0": (), "all": SEVEN}),
        ({"01": "off"}, {"1": ()}),
        ("off", {"all": ()}),
        ("1g.10gb+me", {"all": ("1g.10gb+me",)}),
    ],
)
def test_a_layout_is_text_a_list_or_by_index(written: Any, layouts: Any) -> None:
    settings, _ = load_node_settings({"gpu_mig": written})
    assert settings
    assert settings.of(ROLE).mig == layouts


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("1c.3g.40gb:2, 1g.10gb:4", " 3g.40gb"),
        ({"1g.10gb": 7}, '{"all": "'),
    ],
)
def test_a_form_of_mig_parted_is_answered_by_the_right_one(written: Any, right: str) -> None:
    _, (problem,) = load_node_settings({"gpu_mig": written})
    assert right in problem.message


@pytest.mark.parametrize(
    "data",
    [
        {"gpu_mig": "10gb"},
        {"gpu_mig": "1c.3g.40gb:2"},
        {"gpu_mig": "1g.10gb:0"},
        {"gpu_mig": "1g.10gb:8"},
        {"gpu_mig": {"1g.10gb": 7}},
        {"gpu_mig": {}},
        {"gpu_mig": []},
        {"gpu_mig": 7},
        {"gpu_mig": {0: "off", "00": "1g.10gb:7"}},
        {"gpu_mig": "1g.10gb\x1b[31m"},
        {"gpu_power_limit": 0},
        {"gpu_clocks": [1400, 1000]},
        {"gpu_clocks": "fast"},
        {"gpu_clocks": 1400.5},
        {"gpu_memory_clocks": [1, 2, 3]},
        {"gpu_compute_mode": "exclusive"},
    ],
)
def test_a_wrong_value_is_refused_with_its_key(data: dict[str, Any]) -> None:
    settings, problems = load_node_settings(data)
    assert settings is None
    assert any(next(iter(data)) in problem.message for problem in problems)
    assert not any("\x1b" in problem.text for problem in problems)


@pytest.mark.parametrize(
    "data",
    [
        {"gpu_compute_mode": "exclusive-process", "gpu_mig": "1g.10gb:7"},
    ],
)
def test_contradictory_keys_are_refused(data: dict[str, Any]) -> None:
    settings, problems = load_node_settings(data)
    assert settings is None
    assert [problem.code for problem in problems] == ["GF203"]


def test_a_user_may_have_keys_with_the_same_prefix() -> None:
    settings, problems = load_node_settings({"gpu_model": "A100", "gpu_mig": "off"})
    assert settings, problems


def test_a_misspelt_key_is_refused() -> None:
    _, problems = load_node_settings({"gpu_power_limt": 300})
    assert "gpu_power_limit" in problems[0].remedy


@pytest.mark.parametrize("written", ["1000,1400", [1000, 1400], (1000, 1400)])
def test_clocks_are_two_numbers(written: Any) -> None:
    settings, _ = load_node_settings({"gpu_clocks": written})
    assert settings
    assert settings.of(ROLE).clocks == (1000, 1400)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"gpu_sharing": "mps"}, "gpu_replicas"),
        ({"gpu_replicas": 4}, "gpu_sharing"),
        ({"gpu_sharing": "none", "gpu_replicas": 4}, "no replicas"),
        ({"gpu_sharing": "mps", "gpu_replicas": 49}, "48 clients"),
        ({"gpu_sharing": "mps", "gpu_replicas": 2, "gpu_mig": "1g.10gb:7"}, "only by time-slicing"),
        ({"gpu_sharing": "mps", "gpu_replicas": 2, "gpu_compute_mode": "default"}, "compute mode"),
        ({"gpu_mig": {0: "1g.10gb:7", 1: "off"}, "gpu_mig_strategy": "single"}, "one profile"),
    ],
)
def test_contradictory_keys_of_sharing_stop_a_host(data: dict[str, Any], words: str) -> None:
    settings, problems = load_node_settings(data)
    assert settings is None
    (problem,) = problems
    assert words in problem.message


@pytest.mark.parametrize(
    "data",
    [
        {"gpu_sharing": "none"},
        {"gpu_sharing": "time-slicing", "gpu_replicas": 64, "gpu_mig": "1g.10gb:7"},
        {"gpu_sharing": "mps", "gpu_replicas": 48, "gpu_mig": "off"},
        {"gpu_mig": ["1g.10gb:7"], "gpu_mig_strategy": "single"},
    ],
)
def test_keys_of_sharing_change_nothing_on_a_host(data: dict[str, Any]) -> None:
    settings, problems = load_node_settings(data)
    assert (problems, settings is not None) == ([], True)
    assert settings
    assert settings.of(ROLE).manages == ("gpu_mig" in data)
