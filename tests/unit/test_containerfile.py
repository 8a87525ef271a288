"""The container image of the controller: no root user, no secrets, pinned downloads alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
BROAD = {"*", "!constraints.txt", "!dist/gpufleet-*.whl"}


def instructions() -> list[tuple[str, str]]:
    """Instructions and their arguments, in order; continued lines are joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text())
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    return [(name, " ".join(argument.split())) for name, argument in lines]


def of(name: str) -> list[str]:
    return [argument for found, argument in instructions() if found == name]


def test_it_runs_without_root_in_a_home_of_its_own() -> None:
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")
    (user,) = of("USER")
    number = user.split(":")[0]
    assert re.fullmatch("[1-9][0-9]*", number), "a name is no proof for runAsNonRoot"
    home = re.search(r"HOME=(\S+)", " ".join(of("ENV")))
    assert home
    assert f"{number}:0:gpufleet:{home[1]}:" in " ".join(of("RUN"))
    assert of("ENTRYPOINT") == ['["gpufleet"]']


def test_nothing_is_downloaded_without_a_pinned_version() -> None:
    assert of("ADD") == []
    assert not re.search(r"\b(curl|wget)\b|https?://", " ".join(of("RUN")))
    (installing,) = [run for run in of("RUN") if "pip install" in run]
    assert "--constraint /src/constraints.txt" in installing
    assert "gpufleet-*.whl" in installing
    (base,) = [argument for argument in of("ARG") if argument.startswith("BASE=")]
    tag = base.rpartition(":")[2]
    assert re.match(r"\d+\.\d+-\w+", tag), "a base that moves from one Python to the next"
    assert of("FROM") == ["${BASE} AS build", "${BASE}"], "the base can be replaced by one argument"


def test_constraints_pin_what_gpufleet_needs() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {re.split("==", line)[0].lower().replace("_", "-") for line in lines}
    wanted = {Requirement(line).name.lower() for line in needed}
    assert wanted - pinned == set()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!]+", line)] == []


def test_only_the_wheel_and_the_versions_enter_the_build() -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line]
    assert {line for line in ignored if line[0] != "#"} == BROAD
    copied = [word for argument in of("COPY") for word in argument.split()[:-1]]
    assert copied == ["constraints.txt", "dist/gpufleet-*.whl", "--from=build", "/opt/gpufleet"]


@pytest.mark.parametrize("word", ["password", "token", "secret", "id_rsa", "ssh_key"])
def test_it_takes_no_secret_as_an_argument(word: str) -> None:
    given = [*of("ARG"), *of("ENV"), *of("COPY")]
    assert not [argument for argument in given if word in argument.lower()]
