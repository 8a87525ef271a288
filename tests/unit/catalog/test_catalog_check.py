"""`gpufleet catalog check` on a mirror of the real sources, in which things change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main
from tests.unit.catalog.live_mirror import LiveMirror, MakeKey, change_everything, served


def check(mirror: LiveMirror, *options: str) -> Result:
    with served(mirror.root) as url:
        return CliRunner().invoke(main, ["catalog", "check", "--mirror", url, *options])


def gaps(mirror: LiveMirror, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and gaps of a mirror that is written first."""
    mirror.write()
    result = check(mirror, "--json", *options)
    found = json.loads(result.stdout)
    assert [each for each in found["sources"] if each["finding"]] == []
    return result.exit_code, found["gaps"]


@pytest.mark.usefixtures("known_keys")
def test_a_mirror_that_the_catalog_knows_has_no_gap(mirror: LiveMirror) -> None:
    status, found = gaps(mirror)
    assert [each["message"] for each in found] == []
    assert status == 0


@pytest.mark.claim(
    "gpufleet catalog check finds new versions, keys, package names, charts and ends of life.",
    level=1,
)
@pytest.mark.usefixtures("known_keys")
def test_every_change_is_found(mirror: LiveMirror, make_key: MakeKey) -> None:
    expected = change_everything(mirror, make_key)
    status, found = gaps(mirror)
    assert status == 2
    missed = [
        (code, text)
        for code, text in expected
        if not any(each["code"] == code and text in each["message"] for each in found)
    ]
    assert missed == [], [each["message"] for each in found]
    assert len(found) == len(expected), [each["message"] for each in found]


@pytest.mark.usefixtures("known_keys")
def test_only_one_subject_is_read(mirror: LiveMirror) -> None:
    mirror.kubernetes["1.38"] = "2028-02-28"
    mirror.write({"kubernetes"})
    found = json.loads(check(mirror, "--json", "--only", "kubernetes").stdout)
    assert {each["subject"] for each in found["sources"]} == {"kubernetes"}
    assert [each["code"] for each in found["gaps"]] == ["GF682", "GF680"]


def test_a_key_that_has_expired(mirror: LiveMirror, known_keys: str, make_key: MakeKey) -> None:
    mirror.keys["Kubernetes"] = make_key("1d", "20200131T120000")[1]
    _, found = gaps(mirror, "--only", "keys")
    assert [each["code"] for each in found] == ["GF685", "GF686"]
    assert "expire" in found[1]["message"]


@pytest.mark.usefixtures("own_folder")
def test_the_password_of_a_mirror_is_not_printed(mirror: LiveMirror) -> None:
    """It is sent, though: the mirror answers nobody else."""
    mirror.write({"kubernetes", "runtimes"})
    with served(mirror.root, login="carrier:se/cret@9") as url:
        place = url.replace("//", "//carrier:se%2Fcret%409@")
        options = ["--mirror", place, "--only", "kubernetes", "--only", "runtimes"]
        result = CliRunner().invoke(main, ["catalog", "check", *options])
        wrong = CliRunner().invoke(main, ["catalog", "check", *options[:1], place + ":x/?q"])
        refused = CliRunner().invoke(main, ["catalog", "check", "--mirror", url, *options[2:]])
    assert (result.exit_code, wrong.exit_code, refused.exit_code) == (0, 1, 1), result.output
    assert "401" in refused.output
    for output in (result.output, wrong.output, refused.output):
        assert "cret" not in output


@pytest.mark.parametrize("url", ["ftp://mirror.example.com", "mirror", "http://", "http://[x"])
def test_an_address_that_is_no_mirror(url: str) -> None:
    result = CliRunner().invoke(main, ["catalog", "check", "--mirror", url])
    assert (result.exit_code, "--mirror takes a URL" in result.output) == (1, True)
