"""A removal restores every file that gpufleet wrote, and the runtimes still work."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.facts.model import ManagedFile, NodeFacts, Service
from tests.unit.hosts import bare_host, record_of
from tests.unit.toolkit.runtime_removal_plan_setup import edited, provisioned, removal, reported
from tests.unit.toolkit.toolkit_setup import (
    CONFIG,
    CRI_1,
    DAEMON,
    carried_out,
    codes,
    containerd_host,
    docker_host,
    file,
    plan,
    runtime,
)

pytestmark = pytest.mark.claim(
    "If a configuration path changes, nothing stays at the old one.",
    level=1,
)

DROP_IN = "/etc/crio/crio.conf.d/99-nvidia.toml"
OTHER = "/srv/containerd.toml"
CRI = '[plugins."io.containerd.grpc.v1.cri".containerd'
NAMED = f'{CRI}]\ndefault_runtime_name = "nvidia"\n'
KATA = f'{CRI}.runtimes.kata]\nruntime_type = "io.containerd.kata.v2"\n'


class TestDefaultOfTheUsers:
    def test_containerd(self) -> None:
        facts = provisioned(containerd_host(None, "1.6.20"))
        done = removal(edited(facts, CONFIG, facts.texts[CONFIG] + NAMED))
        assert reported(done) == [("GF435", True)]
        assert "default_runtime_name" in done.findings[0].message
        assert (done.changes, done.activation) == ((), "none")
        assert done.record  # nothing is forgotten

    def test_containerd_names_it_beside_our_drop_in(self) -> None:
        main = 'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n'
        facts = provisioned(containerd_host(main, "2.2.7"))
        named = main + "[plugins.'io.containerd.cri.v1.runtime'.containerd]\n"
        named += 'default_runtime_name = "nvidia"\n'
        assert reported(removal(facts)) == []
        assert reported(removal(edited(facts, CONFIG, named))) == [("GF435", True)]

    def test_docker(self) -> None:
        facts = provisioned(docker_host('{"debug": true}'))
        text = json.dumps({**json.loads(facts.texts[DAEMON]), "default-runtime": "nvidia"})
        done = removal(edited(facts, DAEMON, text))
        assert reported(done) == [("GF435", True)]
        assert done.changes == ()

    @pytest.mark.parametrize("flag", ["--default-runtime nvidia", "--default-runtime=nvidia"])
    def test_docker_names_it_on_its_command_line(self, flag: str) -> None:
        facts = provisioned(docker_host("{}"))
        service = Service("docker.service", "loaded", "active", "enabled", f"dockerd {flag}")
        flagged = replace(facts, services={"docker.service": service})
        assert reported(removal(flagged)) == [("GF435", True)]
        added = replace(service, exec_start=f"dockerd {flag} --add-runtime nvidia=/usr/bin/own")
        assert reported(removal(replace(facts, services={"docker.service": added}))) == []

    def test_crio(self) -> None:
        crio = "/etc/crio/crio.conf"
        facts = bare_host(files=file(crio, ""), runtimes=runtime("crio", "1.34.0"))
        facts = provisioned(replace(facts, files=facts.files | file(DROP_IN, None)))
        assert reported(removal(facts)) == []
        named = '[crio.runtime]\ndefault_runtime = "nvidia"\n'
        assert reported(removal(edited(facts, crio, named))) == [("GF435", True)]

    def test_one_that_led_nowhere_before_is_not_our_doing(self) -> None:
        lost = f'version = 2\n{CRI}]\ndefault_runtime_name = "lost"\n'
        facts = provisioned(containerd_host(lost, "1.6.20"))
        assert reported(removal(facts)) == []

    def test_a_removed_setting_does_not_restore_a_lost_default(self) -> None:
        kata = f'version = 2\n{CRI}]\ndefault_runtime_name = "kata"\n{KATA}'
        facts = provisioned(containerd_host(kata, "1.7.24"), default_runtime=True)
        without = facts.texts[CONFIG].replace(KATA, "")
        done = plan(edited(facts, CONFIG, without))
        assert "GF435" in codes(done)
        assert done.runtimes[0].change is None
        assert "GF435" not in codes(plan(facts))


class TestNeededByOthers:
    def test_runc_that_containerd_1_forgets(self) -> None:
        facts = provisioned(containerd_host(None, "1.6.20"))
        done = removal(edited(facts, CONFIG, facts.texts[CONFIG] + KATA))
        assert reported(done) == [("GF434", False)]
        text = (done.change and done.change.after) or ""
        assert "runtimes.runc]" in text
        assert "kata" in text
        assert "nvidia" not in text
        assert "gpufleet" not in text

    def test_containerd_2_keeps_its_own(self) -> None:
        facts = provisioned(containerd_host(None, "1.6.20"))
        facts = edited(facts, CONFIG, facts.texts[CONFIG] + KATA)
        newer = replace(facts, runtimes=runtime("containerd", "2.0.5"))
        done = removal(newer)
        assert reported(done) == []
        assert "runc]" not in ((done.change and done.change.after) or "")

    def test_with_another_default_nobody_needs_it(self) -> None:
        facts = provisioned(containerd_host(None, "1.6.20"))
        named = NAMED.replace("nvidia", "kata")
        done = removal(edited(facts, CONFIG, facts.texts[CONFIG] + named + KATA))
        assert reported(done) == []
        assert "runc]" not in ((done.change and done.change.after) or "")

    def test_the_version_of_a_file_that_was_blank(self) -> None:
        facts = provisioned(containerd_host("\n", "1.6.20"))
        done = removal(edited(facts, CONFIG, facts.texts[CONFIG] + KATA))
        assert reported(done) == [("GF434", False)] * 2
        assert ((done.change and done.change.after) or "").startswith("version = 2")


class TestPathThatChanges:
    """The path of the runtime's configuration differs from that of the previous run."""

    def moved(self, **settings: Any) -> NodeFacts:
        """A host that was provisioned at CONFIG. Now its containerd reads OTHER."""
        facts = provisioned(containerd_host(CRI_1, "1.7.24"))
        facts = edited(facts, OTHER, CRI_1)
        return replace(facts, runtimes=runtime("containerd", "1.7.24", config_path=OTHER))

    def test_the_old_file_loses_what_is_ours(self) -> None:
        done = plan(self.moved())
        (each,) = done.runtimes
        assert [(c.path, c.after) for c in each.others] == [(CONFIG, CRI_1)]
        assert each.change is not None
        assert each.change.path == OTHER
        assert not done.converged("580.159.03")
        after = carried_out(self.moved(), done)
        assert plan(after).runtimes[0].changes == ()
        assert "earlier" not in done.record("1", {}).runtimes["containerd"].as_json()
        assert [(c.path, c.after) for c in removal(after).changes] == [(OTHER, CRI_1)]

    def test_by_a_setting(self) -> None:
        facts = edited(provisioned(containerd_host(CRI_1, "1.7.24")), OTHER, CRI_1)
        (each,) = plan(facts, containerd_config=OTHER).runtimes
        assert [change.path for change in each.changes] == [CONFIG, OTHER]
        assert [change.path for change in each.changes if change.expected] == [OTHER]

    def test_an_old_file_that_cannot_be_cleaned_stays_recorded(self) -> None:
        facts = self.moved()
        ours = facts.texts[CONFIG]
        broken = edited(facts, CONFIG, "[" + ours)
        done = plan(broken)
        assert ("GF401", False) in reported(done.runtimes[0])
        after = carried_out(broken, done)
        (entry,) = done.record("1", {}).runtimes["containerd"].earlier
        assert entry.config == CONFIG
        again = plan(after)
        assert again.record("1", {}) == done.record("1", {})
        assert reported(removal(after))[0] == ("GF401", True)
        fixed = edited(after, CONFIG, ours)
        assert {c.path: c.after for c in removal(fixed).changes} == {CONFIG: CRI_1, OTHER: CRI_1}
        assert [c.path for c in plan(fixed).runtimes[0].others] == [CONFIG]

    def test_an_old_file_that_needs_nvidia_is_left_to_its_owner(self) -> None:
        facts = self.moved()
        done = plan(edited(facts, CONFIG, facts.texts[CONFIG] + NAMED))
        assert ("GF435", False) in reported(done.runtimes[0])
        assert done.runtimes[0].others == ()
        assert [path for path, _ in done.runtimes[0].earlier] == [CONFIG]

    def test_and_back_again(self) -> None:
        facts = carried_out(self.moved(), plan(self.moved()))
        back = replace(facts, runtimes=runtime("containerd", "1.7.24"))
        after = carried_out(back, plan(back))
        assert after.texts[OTHER] == CRI_1
        assert [(c.path, c.after) for c in removal(after).changes] == [(CONFIG, CRI_1)]

    def test_another_name_of_the_same_file_is_no_other_file(self) -> None:
        facts = provisioned(containerd_host(CRI_1, "1.7.24"))
        link = {OTHER: replace(facts.files[CONFIG], path=OTHER, link=CONFIG)}
        moved = replace(
            facts,
            files=facts.files | link,
            runtimes=runtime("containerd", "1.7.24", config_path=OTHER),
        )
        assert plan(moved).runtimes[0].changes == ()

    def test_docker_s_too(self) -> None:
        other = "/srv/daemon.json"
        facts = edited(provisioned(docker_host("{}")), other, '{"debug": true}')
        moved = replace(facts, runtimes=runtime("docker", "27.5.1", config_path=other))
        (each,) = plan(moved).runtimes
        assert [(c.path, c.after) for c in each.others] == [(DAEMON, "{}")]

    def test_k3s_in_the_place_of_containerd(self) -> None:
        path = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
        facts = provisioned(containerd_host(CRI_1, "1.7.24"))
        k3s = runtime("containerd", "2.0.5", unit="k3s.service", config_path=path)
        (each,) = plan(replace(facts, runtimes=k3s)).runtimes
        assert [(c.path, c.after) for c in each.others] == [(CONFIG, CRI_1)]

    def test_the_removal_knows_a_path_that_changed_since(self) -> None:
        done = removal(self.moved())
        assert [(c.path, c.after) for c in done.changes] == [(CONFIG, CRI_1)]


class TestRunThatDidNotComeToItsRecord:
    """A run was killed, or a later step failed: its files are noted and written, not recorded."""

    def unfinished(self) -> NodeFacts:
        facts = provisioned(containerd_host(CRI_1, "1.7.24"))
        noted = facts.provenance.as_json()["toolkit"]["runtimes"]
        older = record_of(toolkit={"runtimes": {}, "version": "1"})
        return replace(facts, provenance=older, noted_runtimes=noted)

    def test_the_next_run_records_it(self) -> None:
        facts = self.unfinished()
        done = plan(facts)
        assert codes(done) == []  # in particular, nothing is considered the user's own (GF406)
        assert done.runtimes[0].changes == ()
        assert done.record("1", {}).as_json()["runtimes"] == facts.noted_runtimes

    def test_so_does_a_run_that_leaves_this_runtime_out(self) -> None:
        facts = self.unfinished()
        done = plan(facts, runtimes=("docker",))
        assert done.record("1", {}).as_json()["runtimes"] == facts.noted_runtimes

    def test_the_removal_undoes_it(self) -> None:
        assert [(c.path, c.after) for c in removal(self.unfinished()).changes] == [(CONFIG, CRI_1)]

    def test_a_note_that_was_not_carried_out_does_no_harm(self) -> None:
        facts = edited(self.unfinished(), CONFIG, CRI_1)
        assert (removal(facts).changes, reported(removal(facts))) == ((), [])
        assert plan(facts).runtimes[0].change is not None
        assert [c.after for c in removal(provisioned(facts)).changes] == [CRI_1]


@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_cannot_be_read_stops_the_removal(there: bool) -> None:
    facts = provisioned(containerd_host(CRI_1, "1.7.24"))
    odd = {CONFIG: ManagedFile(CONFIG, None, error="it is not UTF-8 text")} if there else {}
    done = removal(replace(facts, files=odd))
    assert reported(done) == [("GF401", True)]
    assert done.record


def test_a_removed_file_is_no_obstacle() -> None:
    facts = edited(provisioned(containerd_host(CRI_1, "1.7.24")), CONFIG, None)
    assert (removal(facts).changes, reported(removal(facts))) == ((), [])
