"""Each key, value, command, file and finding that a remedy names exists."""

from __future__ import annotations

import pytest

from tests.unit.remedy_rules import (
    commands,
    kinds,
    sentences,
    wrong_commands,
    wrong_in_code,
    wrong_names,
    wrong_settings,
)

pytestmark = pytest.mark.claim(
    "Each remedy of a finding names settings, values, commands and files that exist.",
    level=1,
)


def test_each_remedy_can_be_followed() -> None:
    wrong = {
        code: [*wrong_settings(text), *wrong_commands(commands(text)), *wrong_names(text)]
        for code, text in kinds().items()
    }
    assert {code: found for code, found in wrong.items() if found} == {}
    assert len(wrong) > 300


def test_sentences_name_what_exists() -> None:
    wrong = {
        place: problems for place, text in sentences().items() if (problems := wrong_in_code(text))
    }
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "Set driver_versoin to it.",
        'Set driver_build = "precompield".',
        "Set exporter_version = {newest}.",
        "Run `gpufleet apply --limit` for this host.",
        "Run `gpufleet verify INVENTORY --kk x`.",
        "Start it: systemctl enable --now containerd",
        "Run `sytemctl restart docker`.",
        "Run `kubectl get 'pods`.",
        "See docs/how-to/nothing.md.",
        "See GF000.",
    ],
)
def test_wrong_advice_is_found(text: str) -> None:
    assert [*wrong_settings(text), *wrong_commands(commands(text)), *wrong_names(text)]
