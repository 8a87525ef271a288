"""The result of all files of a runtime: adopted entries are judged like those gpufleet writes.

The inputs are rewritten from public reports; each test names its source.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from gpufleet.facts.model import Service
from tests.unit.toolkit.runtime_removal_plan_setup import edited, provisioned, removal, reported
from tests.unit.toolkit.runtime_result_setup import (
    BINARY,
    CONF_D,
    CRIO_D,
    DEFAULT_FILE,
    IMPORTS,
    MAIN,
    NEW,
    OLD,
    PACKAGED,
    SYSTEMD,
    binary,
    codes_of,
    crio_host,
    host,
    only,
    planned,
    table,
    written,
)
from tests.unit.toolkit.toolkit_setup import (
    CONFIG,
    DAEMON,
    codes,
    docker_host,
    plan,
)

TOOLKIT = "/etc/nvidia-container-runtime/config.toml"
NVIDIA_CTK = f"{CONF_D}/99-nvidia.toml"  # the name that nvidia-ctk gives its drop-in


class TestTheTableOfTheFilesVersion:
    """NVIDIA/nvidia-container-toolkit#1956: containerd's own default file, with drop-ins."""

    def test_our_drop_in_has_what_the_base_runtime_has(self) -> None:
        main = DEFAULT_FILE + table(NEW, "runc", SYSTEMD)
        done = planned(host("2.2.1", {CONFIG: main}))
        assert f'[plugins."{NEW}".containerd.runtimes.nvidia.options]\n{SYSTEMD}\n' in written(done)
        assert done.findings == ()

    def test_a_runtime_in_the_main_file_is_not_overridden(self) -> None:
        own = table(NEW, "nvidia", binary("/usr/local/nvidia/toolkit/nvidia-container-runtime"))
        done = planned(host("2.2.1", {CONFIG: DEFAULT_FILE + own}))
        assert (done.change, codes_of(done)) == (None, ["GF405"])
        assert CONFIG in only(done).message

    def test_the_main_file_names_ours_as_its_default(self) -> None:
        main = DEFAULT_FILE + table(NEW, "runc", SYSTEMD)
        facts = provisioned(host("2.2.1", {CONFIG: main}))
        named = main.replace("default_runtime_name = 'runc'", "default_runtime_name = 'nvidia'")
        assert reported(removal(edited(facts, CONFIG, named))) == [("GF435", True)]

    def test_a_default_that_is_replaced_is_reported(self) -> None:
        kata = DEFAULT_FILE.replace("= 'runc'", "= 'kata'")
        kata += table(NEW, "kata", kind="io.containerd.kata.v2")
        done = planned(host("2.2.1", {CONFIG: kata}), default_runtime=True)
        assert codes_of(done) == ["GF407"]
        assert CONFIG in only(done).message

    @pytest.mark.parametrize(
        ("version", "plugin"),
        [("version = 2\n", OLD), ("", OLD), ("", "cri"), ("version = 3\n", NEW)],
    )
    def test_an_older_file_on_containerd_2_3(self, version: str, plugin: str) -> None:
        """containerd converts each file from its version on (`config dump` of 2.3.7)."""
        main = version + table(plugin, "nvidia", binary())
        assert codes_of(planned(host("2.3.7", {CONFIG: main}))) == ["GF406"]

    def test_a_table_of_the_new_name_in_a_file_of_version_2(self) -> None:
        """If a table has the new name, containerd 2.x ignores the runtimes under the old name."""
        main = "version = 2\n" + table(NEW, "runc", SYSTEMD)
        text = written(planned(host("2.3.7", {CONFIG: main})))
        assert f'[plugins."{NEW}".containerd.runtimes.nvidia]' in text

    def test_a_table_of_the_name_of_version_2_in_a_file_without_version(self) -> None:
        """A second table under the name of version 1 would be ambiguous for containerd 2.3."""
        main = f"[plugins.'{OLD}'.registry]\nconfig_path = '/etc/containerd/certs.d'\n"
        text = written(planned(host("2.4.2", {CONFIG: main})))
        assert f'[plugins."{OLD}".containerd.runtimes.nvidia]' in text

    def test_a_drop_in_without_version_on_containerd_1(self) -> None:
        """containerd 1 uses the highest version of all files (`config dump` of 1.6.20, 1.7.32)."""
        files = {CONFIG: f"version = 2\n{IMPORTS}", NVIDIA_CTK: table(OLD, "nvidia", binary())}
        files[NVIDIA_CTK] += table(OLD, "runc")
        assert codes_of(planned(host("1.6.33", files))) == ["GF406", "GF415"]

    def test_a_drop_in_of_a_drop_in(self) -> None:
        """containerd follows the imports of imported files."""
        files = {
            CONFIG: f'version = 3\nimports = ["{CONF_D}/one.toml"]\n',
            f"{CONF_D}/one.toml": 'version = 3\nimports = ["site/*.toml"]\n',
            f"{CONF_D}/site/gpu.toml": "version = 3\n" + table(NEW, "nvidia", binary()),
        }
        done = planned(host("2.2.1", files))
        assert (done.change, codes_of(done)) == (None, ["GF406"])
        assert "site/gpu.toml" in only(done).message

    def test_a_drop_in_disables_the_cri_plugin(self) -> None:
        files = {
            CONFIG: f"version = 2\n{IMPORTS}",
            f"{CONF_D}/a.toml": 'disabled_plugins = ["cri"]\n',
        }
        done = planned(host("1.7.24", files))
        assert codes_of(done) == ["GF409"]
        assert f"{CONF_D}/a.toml" in only(done).message


class TestCdiIsAnExtra:
    """NVIDIA/nvidia-container-toolkit#1404: nvidia-ctk's drop-in on containerd 1.7."""

    FILES: ClassVar = {
        CONFIG: f"version = 2\n{IMPORTS}" + table(OLD, "runc", SYSTEMD),
        NVIDIA_CTK: "version = 2\n"
        + table(OLD, "nvidia", binary(), SYSTEMD)
        + table(OLD, "runc", SYSTEMD),
    }

    def test_it_does_not_block_a_host_that_has_the_runtime(self) -> None:
        done = planned(host("1.7.28", dict(self.FILES)))
        assert (done.change, codes_of(done)) == (None, ["GF406", "GF408"])
        assert not any(finding.blocks for finding in done.findings)
        assert f'[plugins."{OLD}"] in {NVIDIA_CTK}' in done.findings[1].remedy

    def test_the_file_that_counts_enables_it(self) -> None:
        files = dict(self.FILES)
        files[NVIDIA_CTK] += f"[plugins.'{OLD}']\nenable_cdi = true\n"
        assert codes_of(planned(host("1.7.28", files))) == ["GF406"]

    def test_without_the_runtime_it_blocks(self) -> None:
        files = {**self.FILES, NVIDIA_CTK: "version = 2\n" + table(OLD, "runc", SYSTEMD)}
        done = planned(host("1.7.28", files))
        assert (done.change, reported(done)) == (None, [("GF426", True)])

    def test_a_file_that_appears_after_our_run(self) -> None:
        facts = provisioned(host("1.7.28", {CONFIG: f"version = 2\n{IMPORTS}"}))
        later = edited(
            facts,
            f"{CONF_D}/registry.toml",
            f"version = 2\n[plugins.'{OLD}'.registry]\nconfig_path = '/x'\n",
        )
        assert reported(planned(later)) == [("GF426", True)]


class TestCdiSwitchedOff:
    """awslabs/amazon-eks-ami PR#2100: `enable_cdi = false` was kept from 1.7 to 2.x."""

    def test_containerd_2(self) -> None:
        main = f"version = 3\n[plugins.'{NEW}']\nenable_cdi = false\n" + table(NEW, "runc")
        done = planned(host("2.2.1", {CONFIG: main}))
        assert codes_of(done) == ["GF408"]
        assert f"enable_cdi from {CONFIG}" in only(done).remedy

    def test_a_drop_in_of_it(self) -> None:
        files = {CONFIG: f"version = 3\n{IMPORTS}"}
        files[f"{CONF_D}/10-site.toml"] = f"version = 3\n[plugins.'{NEW}']\nenable_cdi = false\n"
        done = planned(host("2.2.1", files))
        assert codes_of(done) == ["GF408"]
        assert "10-site.toml" in only(done).remedy

    def test_docker_28(self) -> None:
        text = '{"features": {"cdi": false}}'
        assert codes(plan(docker_host(text, version="28.3.0"))) == ["GF408"]
        assert codes(plan(docker_host(text, version="28.3.0"), cdi=False)) == []


class TestADefaultThatIsNotDefined:
    """NVIDIA/nvidia-container-toolkit#410: no config.toml, then nvidia-ctk on containerd 1.x."""

    NVIDIA = table(OLD, "nvidia", binary())

    def test_in_a_file_of_others(self) -> None:
        files = {CONFIG: f"version = 2\n{IMPORTS}", NVIDIA_CTK: "version = 2\n" + self.NVIDIA}
        done = planned(host("1.6.20", files))
        assert (done.change, codes_of(done)) == (None, ["GF406", "GF441", "GF415"])
        warning = done.findings[1]
        assert "default_runtime_name of containerd is runc" in warning.message
        assert f'[plugins."{OLD}".containerd.runtimes.runc]' in warning.remedy
        assert NVIDIA_CTK in warning.remedy

    def test_in_the_main_file_it_is_defined(self) -> None:
        main = "version = 2\n" + self.NVIDIA
        done = planned(host("1.6.20", {CONFIG: main}))
        assert "containerd.runtimes.runc]" in written(done)
        assert "GF441" not in codes_of(done)
        facts = provisioned(host("1.6.20", {CONFIG: main}))
        assert planned(facts).change is None
        assert reported(removal(facts)) == [("GF434", False)]  # the user's nvidia needs it

    def test_the_default_is_a_table_of_its_own(self) -> None:
        """containerd/containerd#5042: a file of version 1 on containerd 1.4."""
        main = '[plugins.cri.containerd.default_runtime]\nruntime_type = "io.containerd.runc.v1"\n'
        done = planned(host("1.4.4", {CONFIG: main + table("cri", "nvidia", binary())}))
        assert (done.change, codes_of(done)) == (None, ["GF406", "GF415"])
        overridden = planned(
            host("1.4.4", {CONFIG: main + table("cri", "nvidia", binary())}), default_runtime=True
        )
        assert codes_of(overridden) == ["GF406", "GF442", "GF415"]

    def test_a_table_of_its_own_is_the_base(self) -> None:
        head = f"[plugins.'{OLD}'.containerd.default_runtime"
        main = f"version = 2\n{head}]\nruntime_type = 'io.containerd.runc.v2'\n{head}.options]\n"
        done = planned(host("1.7.24", {CONFIG: main + SYSTEMD + "\n"}))
        assert codes_of(done) == []
        assert written(done).count(SYSTEMD) == 2
        assert "runtimes.runc]" not in written(done)

    def test_containerd_2_keeps_its_own(self) -> None:
        main = "version = 3\n" + table(NEW, "nvidia", binary())
        done = planned(host("2.2.1", {CONFIG: main}))
        assert (done.change, codes_of(done)) == (None, ["GF406"])

    def test_another_one(self) -> None:
        main = f"version = 2\n[plugins.'{OLD}'.containerd]\ndefault_runtime_name = 'gone'\n"
        done = planned(host("1.7.24", {CONFIG: main + table(OLD, "runc")}))
        assert codes_of(done) == ["GF441"]
        assert CONFIG in only(done).remedy

    def test_docker(self) -> None:
        done = planned(docker_host('{"default-runtime": "gone"}'))
        assert codes_of(done) == ["GF441"]

    def test_one_that_the_change_defines(self) -> None:
        done = planned(docker_host('{"default-runtime": "nvidia"}'))
        assert codes_of(done) == ["GF449"]
        assert '"nvidia-container-runtime"' in written(done)
        assert "GF449" not in codes_of(planned(docker_host(written(done))))

    def test_crio(self) -> None:
        done = planned(crio_host({MAIN: '[crio.runtime]\ndefault_runtime = "kata"\n'}))
        assert codes_of(done) == ["GF441"]


class TestALaterFileSetsTheDefault:
    LOCAL = f"version = 3\n[plugins.'{NEW}'.containerd]\ndefault_runtime_name = 'runc'\n"

    @pytest.mark.parametrize("name", ["99-local.toml", "99-nvidia.toml", "zz.toml"])
    def test_containerd(self, name: str) -> None:
        files = {CONFIG: f"version = 3\n{IMPORTS}", f"{CONF_D}/{name}": self.LOCAL}
        done = planned(host("2.2.1", files), default_runtime=True)
        assert codes_of(done) == ["GF442"]
        assert f"{CONF_D}/{name}" in only(done).remedy

    def test_an_earlier_one_loses(self) -> None:
        files = {CONFIG: f"version = 3\n{IMPORTS}", f"{CONF_D}/10-local.toml": self.LOCAL}
        assert codes_of(planned(host("2.2.1", files), default_runtime=True)) == []

    def test_crio(self) -> None:
        later = "/etc/crio/crio.conf.d/zz-site.conf"
        files = {MAIN: "", later: '[crio.runtime]\ndefault_runtime = "runc"\n'}
        done = planned(crio_host(files), default_runtime=True)
        assert codes_of(done) == ["GF442"]
        assert later in only(done).remedy


class TestAdopted:
    def test_crio_without_its_monitor(self) -> None:
        """NVIDIA/nvidia-container-toolkit#681: CRI-O finds no conmon in PATH."""
        entry = f'[crio.runtime.runtimes.nvidia]\nruntime_path = "{BINARY}"\nruntime_type = "oci"\n'
        files = {f"{CRIO_D}/10-crio.conf": PACKAGED, f"{CRIO_D}/99-nvidia.toml": entry}
        done = planned(crio_host(files))
        assert (done.change, codes_of(done)) == (None, ["GF405"])
        assert "monitor_path is not set, not /usr/libexec/crio/conmon" in only(done).message
        assert "runtime_root" not in only(done).message  # /run/crun is the default

    def test_crio_with_conmon_in_path(self) -> None:
        base = PACKAGED.replace("/usr/libexec/crio/conmon", "/usr/bin/conmon")
        entry = f'[crio.runtime.runtimes.nvidia]\nruntime_path = "{BINARY}"\n'
        entry += 'runtime_root = "/run/crun"\n'
        files = {f"{CRIO_D}/10-crio.conf": base, f"{CRIO_D}/50-gpu.conf": entry}
        done = planned(crio_host(files))
        assert codes_of(done) == ["GF406"]
        assert f"{CRIO_D}/50-gpu.conf" in only(done).message

    def test_crio_has_its_own_crun(self) -> None:
        """nvidia-container-runtime 1.20.1 looks in PATH; CRI-O's packages have crun elsewhere."""
        facts = crio_host({f"{CRIO_D}/10-crio.conf": PACKAGED})
        lacking = replace(facts.runtimes["crio"], runc_in_path=False)
        facts = replace(facts, runtimes={"crio": lacking})
        done = planned(facts)
        assert codes_of(done) == ["GF444"]
        assert "runtimes=/usr/libexec/crio/crun" in only(done).remedy
        toolkit = '[nvidia-container-runtime]\nruntimes = ["/usr/libexec/crio/crun"]\n'
        assert codes_of(planned(edited(facts, TOOLKIT, toolkit))) == []
        assert codes_of(
            planned(edited(facts, TOOLKIT, toolkit.replace("/usr/libexec/crio/", "")))
        ) == ["GF444"]

    def test_a_setting_of_the_base_runtime_is_missing(self) -> None:
        base = table(OLD, "runc", SYSTEMD).replace(
            "\n", "\nprivileged_without_host_devices = true\n", 1
        )
        main = "version = 2\n" + base + table(OLD, "nvidia", binary(), SYSTEMD)
        done = planned(host("1.7.24", {CONFIG: main}), cdi=False)
        assert codes_of(done) == ["GF405"]
        assert "privileged_without_host_devices is not set, not true" in only(done).message

    def test_the_only_runtime_differs_from_no_other(self) -> None:
        """NVIDIA/nvidia-docker#1788: nvidia as default, and the only runtime of the file."""
        head = f"version = 2\n[plugins.'{OLD}'.containerd]\ndefault_runtime_name = 'nvidia'\n"
        main = head + table(OLD, "nvidia", binary(), SYSTEMD)
        done = planned(host("1.6.20", {CONFIG: main}))
        assert (done.change, codes_of(done)) == (None, ["GF406", "GF415"])

    def test_what_only_theirs_has_is_the_users(self) -> None:
        main = (
            "version = 2\n" + table(OLD, "runc") + table(OLD, "nvidia", binary(), 'Root = "/run/x"')
        )
        assert codes_of(planned(host("1.7.24", {CONFIG: main}), cdi=False)) == ["GF406"]

    def test_docker_has_it_on_its_command_line(self) -> None:
        start = f"/usr/bin/dockerd --add-runtime nvidia={BINARY}"
        unit = Service("docker.service", "loaded", "active", "enabled", start)
        facts = replace(docker_host("{}"), services={unit.name: unit})
        done = planned(facts, cdi=False)
        assert (done.change, codes_of(done)) == (None, ["GF406"])
        assert "docker.service" in only(done).message


def test_the_users_own_entry_replaces_ours() -> None:
    """If the main file later gets the same runtime as our drop-in, the user's entry counts."""
    main = DEFAULT_FILE + table(NEW, "runc", SYSTEMD)
    facts = provisioned(host("2.2.1", {CONFIG: main}))
    own = main + table(NEW, "nvidia", binary("/opt/nvidia-container-runtime"), SYSTEMD)
    done = planned(edited(facts, CONFIG, own))
    assert codes_of(done) == ["GF405"]
    assert done.change is not None
    assert done.change.after is None


def test_an_extra_brace_is_refused_without_a_claim_about_docker() -> None:
    """dockerd 20.10.24 starts with such a file (verified)."""
    done = planned(docker_host('{"log-driver": "json-file"}\n}\n', version="20.10.24"), cdi=False)
    assert reported(done) == [("GF401", True)]
    assert "start" not in only(done).remedy
    assert DAEMON in only(done).message


class TestTexts:
    def test_an_unknown_version_is_called_unknown(self) -> None:
        (finding,) = planned(docker_host("{}", version="")).findings
        assert finding.code == "GF415"
        assert "its version is unknown" in finding.message

    def test_an_entry_of_docker_without_path(self) -> None:
        entry = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.runc.v2"}}}'
        finding = planned(docker_host(entry)).findings[0]
        assert finding.code == "GF405"
        assert "path is not set, runtimeType" in finding.message

    def test_an_adopted_entry_beside_a_change(self) -> None:
        entry = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
        done = planned(docker_host(entry))
        assert '"cdi": true' in written(done)
        assert codes_of(done) == ["GF406"]
        assert "Nothing was added" not in only(done).message
