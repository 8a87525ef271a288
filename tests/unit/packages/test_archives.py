"""Repositories that are gone: found, switched off line by line, replaced by their archives."""

from __future__ import annotations

import configparser
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.facts.model import Keyring, ManagedFile, NodeFacts
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.archives import ARCHIVES_FILE, ArchivesPlan, plan_archives
from gpufleet.packages.yum_files import switch_off
from tests.unit.hosts import bare_host
from tests.unit.packages.archives_setup import STOCK, el7

BASE = "/etc/yum.repos.d/CentOS-Base.repo"
OWN = "[own]\nname=own\nbaseurl=http://repo.example.org/el7/\n"
EPEL = (
    "[epel]\nname=EPEL 7\nmetalink=https://mirrors.fedoraproject.org/metalink?repo=epel-7&arch=x\n"
)
OLD_EPEL = "[epel]\nname=EPEL 7\nbaseurl=http://download.fedoraproject.org/pub/epel/7/$basearch\n"
EPEL_KEY = "91E97D7C4A5E96F17F3E888F6A2FAEA2352C64E5"
EPEL_KEYRING = "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpufleet-EPEL-7"


def plan_for(facts: NodeFacts, lacking: Any = ("dkms",), **data: Any) -> ArchivesPlan:
    settings, problems = load_node_settings(data)
    assert settings is not None, problems
    return plan_archives(settings.host, facts, load_catalog(), lacking)


def after(facts: NodeFacts, plan: ArchivesPlan) -> NodeFacts:
    """The host after the plan was carried out."""
    files = dict(facts.files)
    for file in plan.files:
        assert isinstance(file.content, str)
        files[file.path] = ManagedFile(file.path, file.content, sha256="1")
    keyrings = tuple(Keyring(key.path, key.fingerprints) for key in plan.keys)
    return bare_host(
        os=facts.os, package_manager="yum", files=files, keyrings=facts.keyrings + keyrings
    )


def codes(plan: ArchivesPlan) -> list[str]:
    return [finding.code for finding in plan.findings if finding.blocks]


def written(plan: ArchivesPlan, path: str) -> str:
    (text,) = [file.content for file in plan.files if file.path == path]
    assert isinstance(text, str)
    return text


def archives_of(plan: ArchivesPlan) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    parser.read_string(written(plan, ARCHIVES_FILE))
    return {name: parser.get(name, "baseurl") for name in parser.sections()}


def test_a_stock_host_is_stopped_and_the_setting_is_named() -> None:
    plan = plan_for(el7(CentOS_Base=STOCK))
    assert codes(plan) == ["GF317", "GF318"]
    assert not plan.needed
    assert "base (/etc/yum.repos.d/CentOS-Base.repo), updates" in plan.findings[0].message
    assert "centosplus" not in plan.findings[0].message
    assert "node_archives" in plan.findings[0].remedy
    assert "node_archives" in plan.findings[1].remedy


def test_what_is_used_and_what_is_not_is_named() -> None:
    [stock] = [f for f in plan_for(el7(CentOS_Base=STOCK), node_archives=True).findings
               if not f.blocks]  # fmt: skip
    [none] = [f for f in plan_for(el7(), node_archives=True).findings if not f.blocks]
    assert "centos7-base" in stock.message
    assert "updates" in stock.message
    assert "none" not in stock.message
    assert "none" in none.message


def test_a_foreign_key_beside_the_archives_is_a_blocker() -> None:
    facts = el7(CentOS_Base=STOCK)
    done = after(facts, plan_for(facts, node_archives=True))
    assert codes(plan_for(done, node_archives=True)) == []
    keyrings = tuple(Keyring(k.path, (*k.fingerprints[:1], "B" * 40)) for k in done.keyrings)
    plan = plan_for(replace(done, keyrings=keyrings), node_archives=True)
    assert codes(plan) == ["GF324"]
    assert plan.keys, "and it is not taken for converged"


def test_a_host_that_needs_no_package_is_left_alone() -> None:
    assert plan_for(el7(CentOS_Base=STOCK), lacking=None) == ArchivesPlan()


@pytest.mark.parametrize(
    "facts",
    [
        el7(own=OWN),
        el7(own=OWN, epel=EPEL),
        el7(own=f"{OWN}mirrorlist=http://mirrorlist.centos.org/?release=7\n", epel=EPEL),
        el7(os="rhel"),
        bare_host(),
        el7(CentOS_Base=STOCK.replace("mirrorlist.centos.org", "mirror.example.org"), epel=EPEL),
    ],
)
def test_repositories_that_live_are_left_alone(facts: NodeFacts) -> None:
    assert codes(plan_for(facts)) == []


def test_another_repository_may_have_dkms() -> None:
    assert codes(plan_for(el7(CentOS_Base=STOCK, own=OWN))) == ["GF317"]


def test_the_setting_switches_to_the_archives() -> None:
    plan = plan_for(el7(CentOS_Base=STOCK), node_archives=True)
    assert codes(plan) == []
    assert archives_of(plan) == {
        "gpufleet-archive-centos7-base": "https://vault.centos.org/7.9.2009/os/$basearch/",
        "gpufleet-archive-centos7-updates": "https://vault.centos.org/7.9.2009/updates/$basearch/",
        "gpufleet-archive-epel7": (
            "https://archives.fedoraproject.org/pub/archive/epel/7/$basearch/"
        ),
    }
    (key,) = plan.keys
    assert key.fingerprints == (EPEL_KEY,)
    assert key.path == EPEL_KEYRING
    assert f"gpgkey=file://{EPEL_KEYRING}" in written(plan, ARCHIVES_FILE)


def test_only_the_lines_that_have_to_change_do() -> None:
    text = written(plan_for(el7(CentOS_Base=STOCK), node_archives=True), BASE)
    kept = [line for line in text.splitlines() if not line.startswith("# Switched off")]
    kept.remove("enabled=0")  # base had no such line
    assert [line.replace("enabled = 1", "enabled=0") for line in STOCK.splitlines()] == kept
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    assert {name: parser.get(name, "enabled") for name in parser.sections()} == {
        "base": "0",
        "updates": "0",
        "centosplus": "0",
    }


def test_a_second_run_has_nothing_to_do_also_once_dkms_is_there() -> None:
    facts = el7(CentOS_Base=STOCK)
    then = after(facts, plan_for(facts, node_archives=True))
    for lacking in (("dkms",), (), None):
        again = plan_for(then, lacking=lacking, node_archives=True)
        assert not again.needed, again.files
        assert codes(again) == []
    assert codes(plan_for(then)) == []


def test_epel_by_its_metalink_stays_and_by_its_old_address_goes() -> None:
    living = plan_for(el7(CentOS_Base=STOCK, epel=EPEL), node_archives=True)
    assert "gpufleet-archive-epel7" not in archives_of(living)
    assert living.keys == ()
    dead = plan_for(el7(epel=OLD_EPEL), node_archives=True)
    assert list(archives_of(dead)) == ["gpufleet-archive-epel7"]
    assert "enabled=0" in written(dead, "/etc/yum.repos.d/epel.repo")


def test_a_mirror_of_the_archives_with_its_own_key() -> None:
    plan = plan_for(
        el7(CentOS_Base=STOCK),
        node_archives=True,
        node_archives_url="http://mirror.example.org/archives",
        node_archives_key_fingerprint="A" * 40,
    )
    found = archives_of(plan)
    base = "http://mirror.example.org/archives"
    assert found["gpufleet-archive-centos7-base"] == f"{base}/7.9.2009/os/$basearch/"
    assert found["gpufleet-archive-epel7"] == f"{base}/epel/7/$basearch/"
    assert plan.keys[0].url == f"{base}/epel/RPM-GPG-KEY-EPEL-7"
    assert plan.keys[0].fingerprints == ("A" * 40,)


def test_the_plan_of_a_node_blocks_and_then_does_not() -> None:
    for archives, blocked in ((False, True), (True, False)):
        settings, _ = load_node_settings({"node_archives": archives, "driver_branch": "550"})
        assert settings is not None
        facts = el7(CentOS_Base=STOCK)
        plan = plan_node(settings, facts, load_catalog(), facts.clock)
        assert ("GF317" in [finding.code for finding in plan.blockers]) is blocked
        assert plan.archives.needed is archives


names = st.sampled_from(["base", "updates", "extras", "epel"])
lines = st.sampled_from(["enabled=1", "enabled = yes", "# enabled=1", "", "gpgcheck=1", "name=x"])


@given(
    st.dictionaries(names, st.lists(lines, max_size=6), min_size=1), st.sets(names), st.booleans()
)
def test_switching_off_touches_no_other_section(
    blocks: dict[str, list[str]], off: set[str], ended: bool
) -> None:
    text = "\n".join(line for name, own in blocks.items() for line in (f"[{name}]", *own))
    text += "\n" if ended else ""
    before, now = (configparser.RawConfigParser(strict=False) for _ in range(2))
    before.read_string(text)
    now.read_string(switch_off(text, off, "gone."))
    for name in blocks:
        if name in off:
            assert now.get(name, "enabled") == "0"
        else:
            assert dict(now[name]) == dict(before[name])
