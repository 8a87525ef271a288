"""--limit and --exclude: names and groups, alone, repeated, with commas between."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from gpufleet.cli import deploy, main
from gpufleet.core.inventory import choose_hosts
from gpufleet.verify.inventory import Target

HOSTS = {"a": ("one",), "b": ("one", "two"), "c": ("two",), "login": ()}


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ([], ["a", "b", "c", "login"]),
        (["one"], ["a", "b"]),
        (["a", "c"], ["a", "c"]),
        (["!two"], ["a", "login"]),
        (["!b", "one"], ["a"]),
        (["*", "!lo*"], ["a", "b", "c"]),
    ],
)
def test_the_hosts_that_are_left(words: list[str], left: list[str]) -> None:
    assert choose_hosts(HOSTS, words) == left


def test_without_a_limit_all_but_the_excluded_of_the_usual_ones_are_left() -> None:
    assert choose_hosts(HOSTS, ["!b"], usual=["a", "b"]) == ["a"]
    assert choose_hosts(HOSTS, ["login"], usual=["a", "b"]) == ["login"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["d"], "--limit d matches no host or group"),
        (["a", "!d"], "--exclude d matches no host or group"),
        (["a", "!one"], "--exclude one leaves no host"),
    ],
)
def test_a_word_that_matches_nothing_or_everything(words: list[str], why: str) -> None:
    with pytest.raises(LookupError, match=why):
        choose_hosts(HOSTS, words)


@pytest.mark.parametrize("verb", [["plan"], ["apply", "--yes"], ["remove", "--yes"]])
def test_pyinfra_gets_each_word(monkeypatch: pytest.MonkeyPatch, verb: list[str]) -> None:
    found = [Target(name, groups, {}) for name, groups in HOSTS.items()]
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: found)
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append([path, *words]))
    words = ["--limit", "a,b", "--limit", "c", "--exclude", "two,login"]
    done = CliRunner().invoke(main, [*verb, "inv.py", *words])
    assert done.exit_code == 0, done.output
    at = became[0].index("--limit")
    wanted = "--limit a --limit b --limit c --exclude two --exclude login inv.py"
    assert became[0][at : at + 11] == wanted.split()
