"""Checks of the user's own show neither secrets of the inventory nor control characters."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from verify_command import answer, command, fake_ssh

SUDO, GRAFANA, NESTED, NUMBER = "Sudo-p4ss", "Wombat", "k3y-of'nested\\\\x", 73918264
DATA = {
    "_sudo_password": SUDO,
    "cluster_grafana_password": GRAFANA,
    "site": {"exporter": {"api_key": [NESTED], "user": "visible-user"}},
    "site_token": NUMBER,
    "site_mirror": "https://me:m1rror-login@mirror.example/x",
}
SECRETS = (SUDO, GRAFANA, NESTED, "p4ss", "of'nested", str(NUMBER), "m1rror-login")
CHECKS = """\
import warnings
import pytest

def test_usable(node):
    assert node.data["_sudo_password"] + "!" == SUDO + "!"
    assert f"{node.data['cluster_grafana_password']}" == GRAFANA
    assert node.data["site_token"] + 1 == NUMBER + 1

def test_data(node):
    assert "x" in node.data

def test_same(node):
    assert node.data == {"a": 1}

def test_value(node):
    assert node.data["_sudo_password"] == "other"

def test_number(node):
    assert node.data["site_token"] == 1

def test_raises(node):
    print(node.data["_sudo_password"])
    raise RuntimeError(f"rejected {node.data['site']['exporter']['api_key'][0]}")

def test_fails(node):
    pytest.fail(f"visible-user mirror {node.data['site_mirror']} of {node.target}")

def test_skips(node):
    pytest.skip(f"no login with {node.data['cluster_grafana_password']}")

@pytest.mark.xfail(reason="later")
def test_expected(node):
    pytest.xfail("not with " + node.data["_sudo_password"])

def test_warns(node):
    warnings.warn("typed " + node.data["_sudo_password"])

@pytest.fixture
def prepared(node):
    yield
    raise RuntimeError(node.data["_sudo_password"])

def test_teardown(prepared):
    pass

def test_host(node):
    moved = "disk \\x1b[2A\\x1b[2K full\\r\\x9b1A"
    print(moved)
    warnings.warn(moved)
    assert moved == "empty"

def test_host_skips(node):
    pytest.skip("no disk \\x1b[2A")

def test_host_breaks(node):
    raise RuntimeError("line \\x1b]0;title\\x07")
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each output of a run -> its whole text."""
    folder = tmp_path_factory.mktemp("shown")
    fake_ssh(folder)
    answer(folder, "good", loaded="580.95.05")
    (folder / "fleet.py").write_text(f'gpu_nodes = [("good", {DATA!r})]\n')
    (folder / "checks").mkdir()
    values = f"SUDO, GRAFANA, NUMBER = {SUDO!r}, {GRAFANA!r}, {NUMBER!r}\n"
    (folder / "checks/test_site.py").write_text(values + CHECKS)
    (folder / "checks/test_broken.py").write_text(f"raise RuntimeError({SUDO!r} + '\\x1b[2A')\n")
    files = ("--json", "report.json", "--junit", "report.xml")
    done: subprocess.CompletedProcess[str] = command("fleet.py", *files, folder=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return {
        "terminal": done.stdout + done.stderr,
        "json": (folder / "report.json").read_text(),
        "junit": (folder / "report.xml").read_text(),
    }


def messages(text: str) -> str:
    """Every message of a JSON report."""
    checks = json.loads(text)["hosts"].values()
    return "\n".join(c["message"] for host in checks for c in host["checks"].values())


def test_every_check_has_its_outcome(texts: dict[str, str]) -> None:
    checks = json.loads(texts["json"])["hosts"]["good"]["checks"]
    outcomes = {name: check["outcome"] for name, check in checks.items() if "site." in name}
    assert outcomes.pop("site.usable") == "passed", checks["site.usable"]["message"]
    assert outcomes.pop("site.warns") == "passed"
    skipped = {name for name, outcome in outcomes.items() if outcome == "skipped"}
    assert skipped == {"site.skips", "site.expected", "site.host_skips"}
    assert {outcomes[name] for name in set(outcomes) - skipped} == {"failed", "error"}


@pytest.mark.parametrize("place", ["terminal", "json", "junit"])
@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_of_the_inventory_is_shown(
    texts: dict[str, str], place: str, secret: str
) -> None:
    text = messages(texts[place]) if place == "json" else texts[place]
    assert secret not in text
    assert "visible-user" in texts[place]


@pytest.mark.parametrize("place", ["terminal", "json", "junit"])
def test_no_control_character_of_a_host_is_shown(texts: dict[str, str], place: str) -> None:
    text = messages(texts[place]) if place == "json" else texts[place]
    assert not re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]|#x1B", text)
    assert r"\x1b[2A" in text
