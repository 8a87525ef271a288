"""Settings: types, completeness, and all mistakes of a host in one report."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.load_settings import known_keys
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.gpu_stack.settings import ROLES
from gpufleet.node.settings import load_node_settings, settings_problems
from gpufleet.toolkit.role import ROLE as TOOLKIT

pytestmark = pytest.mark.claim("Every mistake in settings is reported at once.", level=1)


def problems(data: dict[str, Any]) -> list[str]:
    settings, found = load_node_settings(data)
    assert settings is None
    return [f"{finding.code} {finding.message} {finding.remedy}" for finding in found]


def test_no_data_gives_the_careful_defaults() -> None:
    settings, found = load_node_settings({"ssh_user": "root", "_sudo": True})
    assert settings is not None
    assert found == []
    assert settings.host.reboot == "never"
    assert settings.of(DRIVER).hold
    assert not settings.of(DRIVER).allow_disruption


def test_every_mistake_is_reported_at_once() -> None:
    found = problems(
        {
            "driver_bransh": "580",
            "driver_version": 570.1,
            "toolkit_cdi": "perhaps",
            "node_reboot": 1,
        }
    )
    assert len(found) == 4
    text = "\n".join(found)
    assert "Did you mean driver_branch?" in text
    assert "write it in quotes" in text
    for key in ("driver_version", "toolkit_cdi", "node_reboot"):
        assert key in text


@pytest.mark.parametrize("groups", [["gpu_nodes"], ["gpu_cluster"]])
def test_a_key_of_the_command_line_is_not_looked_for_in_the_inventory(groups: list[str]) -> None:
    data = {"driver_bransh": "580", "driver_versoin": "580.95.05"}
    found = settings_problems(groups, data, given=["driver_bransh"])
    assert [each.code for each in found] == ["GF201", "GF201"]
    assert ["--data" in each.message for each in found] == [True, False]


@pytest.mark.parametrize(
    ("key", "example"),
    [("driver_version", "580.95.05"), ("toolkit_version", "1.18.0"), ("driver_branch", "580")],
)
def test_a_number_has_lost_digits_that_no_remedy_can_know(key: str, example: str) -> None:
    (found,) = problems({key: 570.10})
    assert f'in quotes, with every digit, as in "{example}"' in found
    assert f"--data '{key}=\"{example}\"'" in found
    assert '"570.1"' not in found


def test_an_example_of_a_version_is_of_the_same_software() -> None:
    for key, example in (("toolkit_version", "1.18.0"), ("exporter_version", "4.8.3")):
        (found,) = problems({key: "v1.20.1"})
        assert f"such as {example}." in found


@pytest.mark.parametrize("value", [["docker", "podman"], "docker,podman", ("docker", "podman")])
def test_the_wrong_item_of_a_list_is_named(value: Any) -> None:
    (found,) = problems({"toolkit_runtimes": value})
    assert "contains 'podman', which is not 'docker', 'containerd' or 'crio'" in found
    assert found.count("'crio'") == 1
    assert "should be 'auto'" not in found


def test_a_branch_may_be_written_as_a_number() -> None:
    settings, _ = load_node_settings({"driver_branch": 580})
    assert settings is not None
    assert settings.of(DRIVER).branch == "580"


def test_branch_and_version_must_agree() -> None:
    (found,) = problems({"driver_branch": "550", "driver_version": "580.159.03"})
    assert found.startswith(
        'GF203 driver_version = "580.159.03" conflicts with driver_branch = "550"'
    )


def test_a_password_in_a_url_is_not_repeated() -> None:
    (found,) = problems({"driver_repo_url": "ftp://user:hunter2@mirror/x y"})
    assert "hunter2" not in found


@pytest.mark.parametrize(
    "value",
    ["http://m/$(reboot)", "http://m/`id`", "http://m/ x", "http://m/'", "m/x", "http://m/\n"],
)
def test_a_url_that_a_shell_could_mind_is_refused(value: str) -> None:
    assert "driver_repo_url" in problems({"driver_repo_url": value})[0]


@given(
    st.dictionaries(
        st.sampled_from([*known_keys(ROLES), "driver_x", "exporter_y", "toolkit_", "other"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
def test_any_data_gives_settings_or_reasons(data: dict[str, Any]) -> None:
    settings, found = load_node_settings(data)
    assert (settings is None) == bool(found)
    assert all(finding.blocks and finding.message and finding.remedy for finding in found)


@pytest.mark.parametrize(
    "path",
    [
        "etc/a.toml",
        "/etc/my file.toml",
        "/etc/a\n/etc/b",
        "/etc/a\n",
        "/etc/$HOME",
        "/etc/é",
        "/etc/",
    ],
)
def test_a_path_that_is_not_one_plain_word_is_refused(path: str) -> None:
    (problem,) = problems({"toolkit_containerd_config": path})
    assert "absolute path" in problem
    settings, _ = load_node_settings(
        {"toolkit_containerd_config": "/srv/k0s/containerd-1.7@b.toml"}
    )
    assert settings is not None


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("toolkitt_version", "toolkit_version"),
        ("tolkit_version", "toolkit_version"),
        ("Driver_enabled", "driver_enabled"),
        ("DRIVER_ENABLED", "driver_enabled"),
        ("driver-enabled", "driver_enabled"),
        ("driverenabled", "driver_enabled"),
        ("toolkit_hodl", "toolkit_hold"),
        ("exporterr_listen", "exporter_listen"),
        ("monitorng_namespace", "monitoring_namespace"),
    ],
)
def test_a_typo_in_a_key_is_reported(key: str, meant: str) -> None:
    (found,) = problems({key: "x"})
    assert found.startswith("GF201")
    assert f"Did you mean {meant}?" in found


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("cluster_name", ""),
        ("containerd_version", ""),
        ("driver_type", ""),
        ("kubernetes_install_dir", ""),
        ("kubernetes_service_cidr", "kubernetes_service_subnet"),
        ("containerd_config", "toolkit_containerd_config"),
        ("gpu_operator_namespaces", "gpu_operator_namespace"),
    ],
)
def test_a_common_prefix_alone_suggests_no_key(key: str, meant: str) -> None:
    (found,) = problems({key: "x"})
    assert ("Did you mean" in found, f"Did you mean {meant}?" in found) == (bool(meant),) * 2
    assert "own data" in found


@pytest.mark.parametrize(
    "key",
    ["ssh_port", "_sudo", "my_driver_version", "version", "enabled", "namespace", "drive", "tool",
     "slurm_port", "node_exporter_port", "k8s_cluster_name", 7],
)  # fmt: skip
def test_keys_of_others_are_theirs(key: Any) -> None:
    settings, found = load_node_settings({key: "x"})
    assert settings is not None
    assert found == []


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("toolkit_hold", "yes", "True or False"),
        ("driver_enabled", 1, "True or False"),
        ("node_lock_timeout", "60", "a whole number"),
        ("node_lock_timeout", True, "a whole number"),
        ("driver_branch", "\uff15\uff18\uff10", "must be three digits, such as 580"),
        ("driver_version", "580.\u0661.1", "such as 580.95.05"),
        ("driver_branch", "580.95", "must be three digits, such as 580"),
        ("driver_version", "580", "such as 580.95.05"),
        ("driver_version", "580.95.05\n", "such as 580.95.05"),
        ("driver_repo_key_fingerprint", "D42D0685", "40 hexadecimal digits"),
        ("driver_repo_url", "mirror", "such as https://"),
        ("upgrade_canaries", "yes", "a whole number"),
        ("upgrade_window", "at night", "Mon-Thu 09:00-16:30"),
        ("exporter_image", "An image", "such as registry.example.com/"),
        ("toolkit_runtimes", "podman", "docker"),
        ("toolkit_runtimes", "docker,", "docker"),
    ],
)
def test_values_are_of_their_type(key: str, value: object, allowed: str) -> None:
    (found,) = problems({key: value})
    assert found.startswith(f"GF202 {key} = ")
    assert allowed in found


def test_no_value_is_refused_by_a_pattern_that_people_have_to_read() -> None:
    for role in ROLES:
        assert '"pattern"' not in json.dumps(role.model_json_schema()), role


@pytest.mark.parametrize("key", ["driver_repo", "node_archives", "toolkit_repo"])
def test_a_fingerprint_may_be_as_gpg_prints_it(key: str) -> None:
    grouped = "610c 7b14 e068 a878 070d  a4e9 9cd0 a493 d42d 0685"
    settings, found = load_node_settings({f"{key}_key_fingerprint": grouped})
    assert settings is not None, found
    role, _, name = key.partition("_")
    model = settings.by_role.get(role, settings.host)
    value = getattr(model, f"{name}_key_fingerprint")
    assert value == "610C7B14E068A878070DA4E99CD0A493D42D0685"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("containerd", ("containerd",)),
        ("docker, containerd", ("docker", "containerd")),
        (["docker"], ("docker",)),
        (("crio",), ("crio",)),
        ("auto", "auto"),
    ],
)
def test_a_list_may_come_from_the_command_line(value: object, expected: object) -> None:
    settings, found = load_node_settings({"toolkit_runtimes": value})
    assert settings is not None, found
    assert settings.of(TOOLKIT).runtimes == expected


class Odd:
    """An object in the user's data whose repr() fails."""

    def __repr__(self) -> str:
        raise LookupError("hunter2")

    __str__ = __repr__


@pytest.mark.parametrize("value", [Odd(), [Odd()], {"a": Odd()}, {Odd(): 1}, ("docker", Odd())])
@pytest.mark.parametrize("key", ["driver_branch", "toolkit_runtimes", "node_lock_timeout"])
def test_a_value_that_cannot_be_printed_is_a_wrong_one(key: str, value: object) -> None:
    (found,) = problems({key: value, "my_own": Odd(), "my_token": [Odd()]})
    assert found.startswith(f"GF202 {key} = ")
    assert ("raises LookupError" in found) is not isinstance(value, dict)  # which is masked
    assert "hunter2" not in found
