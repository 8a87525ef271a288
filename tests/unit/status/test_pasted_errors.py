"""`gpufleet explain` names the cause of errors that users have posted, and none of other errors."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from gpufleet.cli import main
from gpufleet.core.causes import Cause, load_causes
from gpufleet.core.findings import KNOWN_KINDS
from gpufleet.monitoring.xids import load_xids
from gpufleet.status.causes import known_causes, load_stack_causes
from scripts.finding_codes import finding_modules
from tests.unit.remedy_rules import (
    BACKTICKED,
    commands,
    wrong_commands,
    wrong_names,
    wrong_settings,
)

pytestmark = pytest.mark.claim(
    "`gpufleet explain` names the cause of a pasted error, and no cause of an unknown one.",
    level=1,
)

TEXTS: dict[str, list[dict[str, str]]] = yaml.safe_load(
    (Path(__file__).parent / "texts.yaml").read_text()
)
PARTS = ("written", "later", "again", "common", "field")
LEAST = {
    "written": 1.0,
    "later": 0.4,
    "again": 0.4,
    "common": 0.8,
}  # share of causes in the first measurement
MOST_WRONG = 0.05  # of a part, in the first measurement
UNKNOWN = "unknown"
finding_modules()


def explained(text: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(main, ["explain", "--json"], input=text)
    return done.exit_code, json.loads(done.stdout)


def posted(*parts: str) -> list[Any]:
    return [
        pytest.param(each["text"], each.get("cause", ""), id=f"{part}-{number}")
        for part in parts
        for number, each in enumerate(TEXTS[part])
    ]


@cache
def every_cause() -> dict[str, Cause]:
    xids = load_xids()
    of_xids = [cause for code in xids.xids if (cause := xids.cause(code))]
    return {cause.name: cause for cause in (*known_causes(), *of_xids)}


@pytest.mark.parametrize(("text", "cause"), posted(*PARTS))
def test_the_first_cause_is_the_right_one(text: str, cause: str) -> None:
    status, document = explained(text)
    assert (status, [each["name"] for each in document["causes"]][:1]) == (0, [cause])


@pytest.mark.parametrize(("text", "cause"), posted(UNKNOWN))
def test_an_error_that_it_does_not_know_has_no_cause(text: str, cause: str) -> None:
    status, document = explained(text)
    assert (status, document["recognized"], document["causes"], cause) == (1, False, [], "")


@pytest.mark.parametrize("part", LEAST)
def test_most_first_answers_were_right_or_none(part: str) -> None:
    """`first` is the answer before a correction, so the share is of errors not seen before."""
    firsts = [each.get("first", each["cause"]) for each in TEXTS[part]]
    right = sum(first == each["cause"] for first, each in zip(firsts, TEXTS[part], strict=True))
    wrong = len(firsts) - right - firsts.count(UNKNOWN)
    assert right / len(firsts) >= LEAST[part]
    assert wrong / len(firsts) <= MOST_WRONG
    named = [each["first"] for each in TEXTS[UNKNOWN] if "first" in each]
    assert len(named) / len(TEXTS[UNKNOWN]) <= MOST_WRONG


def test_the_texts_are_many_and_each_is_one() -> None:
    assert len(TEXTS[UNKNOWN]) >= 20
    assert len(TEXTS["written"]) >= 40
    assert len(TEXTS["later"]) >= 40
    texts = Counter((each["url"], each["text"]) for part in TEXTS.values() for each in part)
    assert [text for text, times in texts.items() if times > 1] == []
    urls = [each["url"] for part in TEXTS.values() for each in part]
    assert [url for url in urls if "://" not in url] == []


@pytest.mark.parametrize("name", sorted(every_cause()))
def test_a_cause_can_be_checked_and_its_remedy_followed(name: str) -> None:
    cause = every_cause()[name]
    text = f"{cause.make_sure} {cause.remedy}"
    assert [*wrong_settings(text), *wrong_commands(commands(text)), *wrong_names(text)] == []
    assert BACKTICKED.search(cause.make_sure), "no command"
    assert not cause.code or cause.code in KNOWN_KINDS
    assert cause.make_sure.endswith(".")
    assert cause.remedy.endswith(".")
    assert not cause.cause.endswith(".")


@pytest.mark.parametrize("cause", load_stack_causes().causes, ids=lambda cause: cause.name)
def test_a_cause_says_what_its_patterns_find(cause: Cause) -> None:
    names = [set(each.groupindex) for each in cause.expressions]
    assert all(each <= {"what"} for each in names)
    assert ("{what}" in cause.cause) == (any(names) or cause.path)


def test_every_link_of_the_chain_has_a_cause() -> None:
    assert {cause.link for cause in every_cause().values()} == {*load_stack_causes().chain}
    assert {cause.name for cause in load_causes().causes} <= {*every_cause()}
