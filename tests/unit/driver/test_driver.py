"""The driver plan of a host: every decision and its blockers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpufleet.core.findings import Finding
from gpufleet.driver.files import DRACUT_FILE, MODPROBE_FILE, PREFERENCES_FILE, UNATTENDED_FILE
from gpufleet.driver.preflight import inspect_driver
from gpufleet.driver.record import DriverEntry
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.role import conclude_driver
from gpufleet.facts.files import DRIVER_BEGUN_PATH
from gpufleet.facts.gpu import Listed
from gpufleet.facts.model import (
    DriverFile,
    GpuProcess,
    Keyring,
    ManagedFile,
    NodeFacts,
    OsRelease,
    Package,
)
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.node.catalog import load_catalog
from gpufleet.node.host_checks import inspect_host
from gpufleet.node.settings import load_node_settings
from tests.unit.driver.driver_setup import managed
from tests.unit.hosts import NVSWITCH, bare_host, converged_host, plan_for

pytestmark = pytest.mark.claim(
    "A driver is installed, changed, repaired or blocked by its facts and settings.",
    level=1,
)

OLD = "550.163.01"


def codes(plan: object) -> set[str]:
    return {finding.code for finding in plan.findings}  # type: ignore[attr-defined]


def blocking(facts: NodeFacts, **data: object) -> set[str]:
    return {finding.code for finding in plan_for(facts, **data).findings if finding.blocks}


def test_a_bare_host_gets_a_driver_of_the_long_term_branch(bare: NodeFacts) -> None:
    plan = plan_for(bare)
    assert (plan.action, plan.before, plan.target) == ("install", None, None)
    assert plan.choice.branch == "580"
    assert "nvidia-dkms-580-open" in plan.packages
    assert f"linux-headers-{bare.kernel.release}" in plan.transaction.prerequisites
    assert plan.repository.needed
    assert plan.load
    assert plan.services == ("nvidia-persistenced",)
    assert not plan.converged


def test_a_converged_host_has_nothing_to_do(converged: NodeFacts) -> None:
    plan = plan_for(managed(converged), driver_version="580.159.03")
    assert plan.converged, plan
    assert plan.action == "none"


def test_a_run_that_was_killed_before_its_end_rebuilds_the_initramfs(converged: NodeFacts) -> None:
    killed = replace(managed(converged), provenance=EMPTY_RECORD)
    assert plan_for(killed).files == ()
    assert plan_for(killed).initramfs


def test_a_branch_setting_keeps_the_installed_version(converged: NodeFacts) -> None:
    plan = plan_for(managed(converged), driver_branch="580")
    assert plan.target == "580.159.03"
    assert plan.converged


@pytest.mark.parametrize(
    ("version", "action"), [("580.178.04", "upgrade"), ("580.95.05", "downgrade")]
)
def test_another_version_is_a_move_with_a_direction(
    converged: NodeFacts, version: str, action: str
) -> None:
    plan = plan_for(converged, driver_version=version)
    assert plan.action == action
    assert plan.stale_module


@pytest.mark.parametrize("data", [{}, {"driver_branch": "550"}])
def test_a_driver_moves_down_only_where_a_version_asks_for_it(data: dict[str, str]) -> None:
    canary = converged_host("595.58.03")
    (finding,) = [finding for finding in plan_for(canary, **data).findings if finding.blocks]
    assert finding.code == "GF532"
    assert "595.58.03 is installed" in finding.message
    branch = data.get("driver_branch", "580")
    assert f"with the newest version of branch {branch}, which is older." in finding.message
    assert 'driver_branch = "595"' in finding.remedy
    assert "driver_version" in finding.remedy
    assert "GF532" not in blocking(canary, driver_branch="595")
    assert "GF532" not in blocking(canary, driver_version="580.159.03")
    assert "GF532" not in blocking(canary, driver_version="595.58.03")


def test_the_loaded_module_counts_as_the_packages_do() -> None:
    old = converged_host("580.95.05")
    newer = replace(old, modules={**old.modules, "nvidia": "580.178.04"})
    (finding,) = [finding for finding in plan_for(newer).findings if finding.blocks]
    assert finding.code == "GF532"
    assert (
        "580.178.04 is loaded, and this run would replace it with 580.95.05, which is older."
        in (finding.message)
    )
    assert "GF532" not in blocking(newer, driver_version="580.95.05")
    assert "GF532" not in blocking(old)
    only_loaded = replace(newer, packages={}, module_on_disk=None)
    assert "GF532" in blocking(only_loaded, driver_branch="550")
    assert "GF532" not in blocking(only_loaded, driver_branch="580"), (
        "its newest may be newer still"
    )


def test_a_change_of_branch_replaces_the_old_family() -> None:
    plan = plan_for(converged_host(OLD), driver_branch="580")
    assert plan.action == "replace"
    assert "nvidia-dkms-550" in plan.transaction.installed
    assert "nvidia-dkms-550" not in plan.packages


@pytest.mark.parametrize("data", [{"driver_version": "580.178.04"}, {"driver_branch": "550"}])
def test_running_gpu_work_blocks_a_change(converged: NodeFacts, data: dict[str, str]) -> None:
    busy = replace(converged, gpu_processes=(GpuProcess(4711, "python3"),))
    assert "GF530" in blocking(busy, **data)
    assert "GF530" not in blocking(busy, **data, driver_allow_disruption=True)


def test_dracut_takes_the_blacklist_into_an_image_for_any_host() -> None:
    """Cloud images have hostonly="no": dracut leaves /etc/modprobe.d out of their initramfs."""
    rocky = bare_host(
        os=OsRelease("rocky", "9.6", ("rhel", "centos", "fedora")), package_manager="dnf"
    )
    files = {file.path: file.content for file in plan_for(rocky).wanted_files}
    assert f'install_items+=" {MODPROBE_FILE} "' in str(files[DRACUT_FILE])
    assert DRACUT_FILE not in {file.path for file in plan_for(bare_host()).wanted_files}
    ubuntu = bare_host(packages={"dracut": Package("dracut", "110-11", "all")})
    paths = {file.path for file in plan_for(ubuntu).wanted_files}
    assert {DRACUT_FILE, UNATTENDED_FILE} <= paths


def test_unattended_upgrades_install_precompiled_modules_of_a_new_kernel() -> None:
    files = {file.path: str(file.content) for file in plan_for(bare_host()).wanted_files}
    names = re.findall(r'^ *"(.+)";$', files[UNATTENDED_FILE], re.MULTILINE)
    assert "nvidia-" in names
    modules = "linux-modules-nvidia-580-server-open-generic"
    assert not any(re.match(name, modules) for name in names)


@pytest.mark.claim("A driver change destroys no MIG devices unless a key allows it.", level=1)
@pytest.mark.parametrize("data", [{"driver_version": "580.178.04"}, {"driver_branch": "550"}])
def test_mig_devices_block_a_change(converged: NodeFacts, data: dict[str, str]) -> None:
    host = replace(converged, listed=Listed(1, mig_devices=7))
    assert "GF154" in blocking(host, **data, driver_allow_disruption=True)
    assert "GF154" not in blocking(host, **data, driver_allow_mig_loss=True)
    assert "GF154" not in blocking(host)  # nothing is unloaded
    assert "GF154" not in blocking(replace(host, listed=Listed(1)), **data)


def test_gpu_pods_block_a_change_and_name_the_upgrade(converged: NodeFacts) -> None:
    plan = plan_for(replace(converged, kubelet=True, gpu_pods=2), driver_version="580.178.04")
    (finding,) = [finding for finding in plan.findings if finding.blocks]
    assert finding.code == "GF530"
    assert "drain" in finding.remedy


def test_the_drivers_own_daemons_are_not_work(converged: NodeFacts) -> None:
    daemon = replace(converged, gpu_processes=(GpuProcess(9, "nvidia-persiste"),))
    assert "GF530" not in blocking(daemon, driver_version="580.178.04")


def test_missing_packages_are_completed_beside_running_work(converged: NodeFacts) -> None:
    packages = {
        name: item for name, item in converged.packages.items() if name != "nvidia-utils-580"
    }
    partial = replace(converged, packages=packages, gpu_processes=(GpuProcess(1, "train"),))
    plan = plan_for(partial, driver_version="580.159.03")
    assert plan.action == "repair"
    assert "nvidia-utils-580" in plan.reasons[1]
    assert not blocking(partial, driver_version="580.159.03")


def test_half_installed_packages_are_repaired(converged: NodeFacts) -> None:
    broken = replace(converged.packages["nvidia-dkms-580-open"], state="half-configured")
    facts = replace(converged, packages={**converged.packages, broken.name: broken})
    assert plan_for(facts, driver_version="580.159.03").action == "repair"


def test_a_missing_module_is_repaired(converged: NodeFacts) -> None:
    assert plan_for(replace(converged, module_on_disk=None)).action == "repair"


def test_a_stale_module_is_reloaded(converged: NodeFacts) -> None:
    stale = replace(converged, modules={"nvidia": OLD})
    plan = plan_for(managed(stale), driver_version="580.159.03")
    assert plan.action == "none"
    assert plan.stale_module
    assert plan.load


@pytest.mark.parametrize(("lock", "rebooted"), [("", True), ("root@ctl 1", False)])
def test_an_installation_that_a_reboot_interrupted_says_so(
    converged: NodeFacts, lock: str, rebooted: bool
) -> None:
    """The name of the last run is in /run, which a boot empties."""
    files = {DRIVER_BEGUN_PATH: ManagedFile(DRIVER_BEGUN_PATH, "nvidia-dkms-580-open")}
    name = "nvidia-dkms-580-open"
    half = replace(converged.packages[name], state="half-configured")
    facts = replace(
        converged, packages={**converged.packages, name: half}, files=files, run_lock=lock,
        broken=f"{name} is half-configured",
    )  # fmt: skip
    settings = load_node_settings({})[0]
    assert settings
    (found,) = (
        each
        for each in inspect_driver(settings.of(DRIVER), facts, plan_for(facts))
        if each.code == "GF307"
    )
    assert ("rebooted" in found.message) is rebooted


def test_a_converged_host_is_not_written_to_for_another_gpu(converged: NodeFacts) -> None:
    second = replace(converged.pci[0], slot="0000:65:00.0")
    facts = managed(replace(converged, pci=(*converged.pci, second)))
    plan = plan_for(facts)
    settings = load_node_settings({})[0]
    assert settings
    entry = conclude_driver(settings.of(DRIVER), facts, plan).entry
    assert plan.converged
    assert isinstance(entry, DriverEntry)
    assert entry.gpus == 1


def test_fabric_manager_comes_with_an_nvswitch_only(bare: NodeFacts) -> None:
    assert "nvidia-fabricmanager" not in plan_for(bare).packages
    switched = replace(bare, pci=(*bare.pci, NVSWITCH))
    plan = plan_for(switched)
    assert "nvidia-fabricmanager" in plan.packages
    assert "nvidia-fabricmanager" in plan.services


def test_packages_held_by_another_user_block_a_move(converged: NodeFacts) -> None:
    assert "GF303" not in blocking(converged, driver_version="580.178.04")
    theirs = replace(converged, provenance=EMPTY_RECORD)
    assert "GF303" in blocking(theirs, driver_version="580.178.04")


def test_packages_of_a_run_that_was_killed_are_ours(converged: NodeFacts) -> None:
    names = sorted(converged.packages)
    begun = ManagedFile(DRIVER_BEGUN_PATH, "\n".join(names) + "\n")
    killed = replace(converged, provenance=EMPTY_RECORD, files={DRIVER_BEGUN_PATH: begun})
    found = codes(plan_for(killed, driver_version="580.178.04"))
    assert not {"GF303", "GF512"} & found
    held = next(name for name in names if name in converged.holds)
    begun = ManagedFile(DRIVER_BEGUN_PATH, "\n".join(name for name in names if name != held))
    theirs = replace(killed, files={DRIVER_BEGUN_PATH: begun})
    blocks = plan_for(theirs, driver_version="580.178.04").findings
    assert f" {held}." in next(found.message for found in blocks if found.code == "GF303")


def test_without_hold_nothing_is_pinned(bare: NodeFacts) -> None:
    plan = plan_for(bare, driver_hold=False)
    assert plan.hold == ()
    assert {file.path for file in plan.files} & {PREFERENCES_FILE} == set()
    assert MODPROBE_FILE in {file.path for file in plan.files}


def test_a_second_source_for_the_same_url_blocks(bare: NodeFacts) -> None:
    repository = plan_for(bare).repository.repository
    assert repository
    line = f"deb [trusted=yes] {repository.url} /\n"
    old = ManagedFile("/etc/apt/sources.list.d/cuda.list", line)
    facts = replace(bare, files={old.path: old})
    (finding,) = [finding for finding in plan_for(facts).findings if finding.blocks]
    assert finding.code == "GF301"
    assert old.path in finding.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docker.list", "deb [signed-by=/k.gpg] https://docker.example/ubuntu jammy stable\n"),
        ("cuda.list", "# deb {url} /\n"),
        ("cuda.list", "deb-src [signed-by={keyring}] {url} /\n"),
        ("cuda.list", "deb {url}/older /\n"),
        ("cuda.list", "deb {url} jammy main\n"),
        ("cuda.list", "deb [signed-by={keyring}] {url}/ /\n"),
        ("cuda.sources", "Types: deb\nURIs: {url}\nSuites: /\nEnabled: no\n"),
        ("cuda.sources", "# {url}\nTypes: deb\nURIs: https://a/\nSuites: /\n"),
        ("cuda.sources", "Types: deb\nURIs: {url}\nSuites: /\nSigned-By: {keyring}\n"),
    ],
)
def test_a_source_that_is_no_rival_does_not_block(bare: NodeFacts, name: str, text: str) -> None:
    repository = plan_for(bare).repository.repository
    assert repository
    path = f"/etc/apt/sources.list.d/{name}"
    text = text.format(url=repository.url, keyring=repository.keyring)
    facts = replace(bare, files={path: ManagedFile(path, text)})
    assert [finding for finding in plan_for(facts).findings if finding.blocks] == []


@pytest.mark.parametrize(
    "key", ["", "Signed-By: /other.gpg\n", "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n"]
)
def test_a_second_stanza_for_the_same_url_blocks(bare: NodeFacts, key: str) -> None:
    repository = plan_for(bare).repository.repository
    assert repository
    path = "/etc/apt/sources.list.d/cuda.sources"
    text = f"Types: deb\nURIs: {repository.url}\nSuites: /\n{key}"
    facts = replace(bare, files={path: ManagedFile(path, text)})
    assert [f.code for f in plan_for(facts).findings if f.blocks] == ["GF301"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"runfile_install": True}, "GF146"),
        ({"operator_driver": True}, "GF511"),
        ({"foreign_driver": "its libraries are in /usr/local/nvidia/lib64"}, "GF146"),
        ({"free_bytes": {"/usr": 10**6}}, "GF540"),
        ({"broken": "slurm-wlm is half-configured"}, "GF306"),
    ],
)
def test_what_is_in_the_way_blocks(changes: dict[str, object], code: str) -> None:
    facts = bare_host(**changes)
    settings = load_node_settings({})[0]
    assert settings
    found = inspect_driver(settings.of(DRIVER), facts, plan_for(facts))
    assert code in {finding.code for finding in found if finding.blocks}


@pytest.mark.parametrize(
    ("broken", "ours"),
    [
        ("dkms is half-configured", True),
        ("an interrupted run of dpkg", True),
        ("an interrupted run of dpkg, dkms is half-configured", True),
        ("dkms is half-configured, slurm-wlm is half-configured", False),
        ("nvidia-dkms-580-open is half-configured, slurm-wlm is unpacked", True),
    ],
)
def test_what_a_killed_run_left_does_not_block(broken: str, ours: bool) -> None:
    facts = bare_host(broken=broken)
    settings = load_node_settings({})[0]
    assert settings
    found = inspect_driver(settings.of(DRIVER), facts, plan_for(facts))
    assert ("GF306" not in {finding.code for finding in found}) is ours


@pytest.mark.parametrize(
    ("changes", "version"),
    [
        ({"modules": {"nvidia": "580.1"}}, "Driver 580.1 is"),
        ({"modules": {"nvidia": None}}, "Driver of an unknown version is"),
        ({"library": "570.2"}, "Driver 570.2 is"),
        ({}, "Driver (not loaded) is"),
    ],
)
def test_a_foreign_driver_is_named(changes: dict[str, object], version: str) -> None:
    facts = bare_host(foreign_driver="because", **changes)
    settings = load_node_settings({})[0]
    assert settings
    found = inspect_driver(settings.of(DRIVER), facts, plan_for(facts))
    (finding,) = [finding for finding in found if finding.code == "GF146"]
    assert finding.message.startswith(version)


LIBRARY = "/usr/lib64/libnvidia-ml.so.580.95.05"
EL = {"os": OsRelease("rocky", "9.4", ("rhel",), "", "Rocky 9"), "package_manager": "dnf"}


def blockers(facts: NodeFacts) -> dict[str, Finding]:
    settings = load_node_settings({})[0]
    assert settings
    found = inspect_driver(settings.of(DRIVER), facts, plan_for(facts))
    return {finding.code: finding for finding in found if finding.blocks}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ("nvidia-linux-grid-580",)),
        ({}, ("nvidia-vgpu-ubuntu-580",)),
        (EL, ("nvidia-linux-grid-580",)),
        (EL, ("akmod-nvidia", "xorg-x11-drv-nvidia")),
        (EL, ("nvidia-x11-drv", "kmod-nvidia")),
    ],
)
def test_driver_packages_of_other_sources_block(
    changes: dict[str, object], names: tuple[str, ...]
) -> None:
    packages = {name: Package(name, "580.95.05-1", "x86_64") for name in names}
    finding = blockers(bare_host(packages=packages, **changes))["GF147"]
    assert f"from {', '.join(name for name in names if name != 'kmod-nvidia')}." in finding.message


@pytest.mark.parametrize("kind", ["library", "module", "source"])
def test_the_owner_of_the_driver_decides(kind: str) -> None:
    for owners, code in (
        (("gpu-driver",), "GF147"), (("libnvidia-ml",), None), ((), None), (None, "GF148"),
    ):  # fmt: skip
        file = DriverFile(kind, LIBRARY, owners)
        found = blockers(bare_host(driver_files=(file,), **EL))
        assert set(found) == ({code} if code else set()), owners
    assert f"({LIBRARY})" in found["GF148"].message
    assert f"`rpm -qf {LIBRARY}`" in found["GF148"].remedy
    foreign = bare_host(driver_files=(file,), operator_driver=True)
    assert "GF148" not in blockers(foreign)


def test_secure_boot_blocks_unless_the_key_is_enrolled(bare: NodeFacts) -> None:
    facts = replace(bare, kernel=replace(bare.kernel, secure_boot=True))
    for data, expected in (({}, True), ({"driver_mok_enrolled": True}, False)):
        settings = load_node_settings(data)[0]
        assert settings
        found = inspect_driver(settings.of(DRIVER), facts, plan_for(facts))
        assert ("GF522" in {finding.code for finding in found}) is expected


def test_a_wrong_clock_a_lock_and_an_old_key_are_found(bare: NodeFacts) -> None:
    facts = replace(
        bare,
        lock_holder="apt-get (312)",
        keyrings=(Keyring("/etc/apt/trusted.gpg", ("AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80",)),),
    )
    found = {finding.code for finding in inspect_host(facts, load_catalog(), facts.clock + 3600)}
    assert found == {"GF541", "GF305", "GF302"}
    assert inspect_host(bare, load_catalog(), bare.clock) == []


def test_old_distro_packages_are_named(converged: NodeFacts) -> None:
    server = Package("nvidia-utils-535-server", "535.261.03-0ubuntu0.22.04.1", "amd64")
    facts = bare_host(packages={server.name: server})
    plan = plan_for(facts, driver_branch="580")
    assert plan.action == "replace"
    assert "GF512" in codes(plan)
