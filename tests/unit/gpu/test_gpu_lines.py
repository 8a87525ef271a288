"""Layout and settings of GPUs as a text, which an upgrade writes into the state of a host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.gpu.lines import lines_text, offered_resources, parse_lines
from gpufleet.gpu.settings import GpuSettings

GPU, SMALL, HALF = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
WORDS = st.fixed_dictionaries(
    {},
    optional={
        "mig": st.sampled_from(["off", "1g.10gb:7", "3g.40gb:1,1g.10gb:4", "1g.10gb+me:1"]),
        "ecc": st.sampled_from("01"),
        "power": st.sampled_from(["300", "default"]),
        "clocks": st.sampled_from(["300,1500", "default"]),
        "compute": st.just("Exclusive_Process"),
    },
)


@given(st.dictionaries(st.integers(0, 15), WORDS, min_size=1))
def test_a_text_has_the_words_of_every_gpu(gpus: dict[int, dict[str, str]]) -> None:
    text = lines_text(gpus)
    assert parse_lines(text) == gpus
    assert GpuSettings(lines=text).manages


def test_gpus_with_the_same_words_are_named_together() -> None:
    one, other = {"mig": "1g.10gb:7", "ecc": "1"}, {"mig": "off"}
    gpus = {0: one, 1: one, 2: other, 3: one, 5: one, 6: {}}
    assert lines_text(gpus) == "0-1,3,5: mig=1g.10gb:7 ecc=1; 2: mig=off; 6:"


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "0 mig=off", "x: mig=off", "0: mig", "0: mig=9x", "0: mig=4c.5g.80gb",
        "0: other=1",
        "0-: mig=off", "0: mig=off;rm", "0: power=$(id)", "0: power=1\n", "9999: mig=off",
        "0: mig=off\x1b[2J",
    ],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_lines(text)
    with pytest.raises(ValueError, match="lines"):
        GpuSettings(lines=text)


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("0-7: mig=off", [{GPU: 8}]),
        ("0-1: mig=1g.10gb:7", [{SMALL: 14}, {GPU: 14}]),
        ("0: mig=3g.40gb:1,1g.10gb:4; 1: mig=off", [{HALF: 1, SMALL: 4, GPU: 1}]),
        ("0: mig=1g.10gb:7; 1: stays=off", [{SMALL: 7, GPU: 1}]),
        ("0: stays=3g.40gb:2 ecc=1", [{HALF: 2}, {GPU: 2}]),
        ("0: mig=1g.10gb+me:1", [{"nvidia.com/mig-1g.10gb.me": 1}, {GPU: 1}]),
    ],
)
def test_what_a_node_with_a_layout_offers(text: str, offers: list[dict[str, int]]) -> None:
    assert list(map(dict, offered_resources(text))) == offers
