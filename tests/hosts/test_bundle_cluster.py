"""Hosts that reach only a bundle become a cluster, and change their driver from the next bundle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from checking import GPUFLEET
from cluster_site import bare_hosts
from deploying import ROOT
from driver_state import loaded
from killing import killed
from upgrade_site import NEW, OLD, Nodes

from gpufleet_sandbox.cluster.programs import helm
from gpufleet_sandbox.debian import debian_program
from gpufleet_sandbox.kubernetes.images import GPU_PROBE
from tests.cluster.running_charts import write_running_charts
from tests.cluster.serving import registry
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

NAMES = ("ubuntu2404", "debian12")
KILLS = 20  # one after 1 s, the next after 2 s, …
SHARE = 1.2  # of the size of the packages that an update needs
REGISTRIES = ("registry.k8s.io", "ghcr.io", "nvcr.io", "docker.io", "quay.io")
INVENTORY = """\
import json

from gpufleet_sandbox.inventory import cluster_data, group_data, nodes, stack_data

_keys, _cluster_keys = json.loads({keys!r}), json.loads({cluster_keys!r})
_data = {{**group_data(), **cluster_data({box!r}), "kubernetes_control_plane_pods": True}}
_stack = {{**stack_data({box!r}, {charts!r}), **_cluster_keys}}
_branch = {{"driver_branch": {driver!r}.partition(".")[0]}}
_nodes = [(name, {{**data, **_branch}}) for name, data in nodes({box!r})]
gpu_nodes = (
    _nodes,
    {{
        **_data,
        "driver_version": {driver!r},
        "node_reboot": "if_needed",
        "upgrade_gpu_image": {image!r},
        "upgrade_drain": "gpu",
        "upgrade_soak": 0,
        **_keys,
    }},
)
control_plane = [_nodes[0]]
gpu_cluster = (["@local"], _stack)
"""


@dataclass
class Closed(Nodes):
    """Hosts, and the keys that a server of a bundle printed."""

    driver: str = field(default=OLD, kw_only=True)
    port: int = field(default=0, kw_only=True)  # of the server of bundles
    served: dict[str, Any] = field(default_factory=dict, kw_only=True)
    numbers: dict[str, float] = field(default_factory=dict, kw_only=True)  # to be printed

    def inventory(self) -> str:
        file = self.folder / "inventory.py"
        cluster = {key: self.served[key] for key in self.served if key.startswith("cluster_")}
        file.write_text(
            INVENTORY.format(
                box=self.box.name, charts=str(self.charts), driver=self.driver, image=GPU_PROBE,
                keys=json.dumps({key: self.served[key] for key in self.served.keys() - cluster}),
                cluster_keys=json.dumps(cluster),
            )
        )  # fmt: skip
        return str(file)

    @property
    def environment(self) -> dict[str, str]:
        """With a registries.conf by which skopeo finds all images on the mirror."""
        home = self.folder / "home"
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        address = self.box.host("mirror").address
        text = "".join(
            f'[[registry]]\nprefix = "{name}"\nlocation = "{address}/{name}"\ninsecure = true\n'
            for name in REGISTRIES
        )
        settings = home / ".config/containers/registries.conf"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(text)
        return {**super().environment, "HOME": str(home), "XDG_CACHE_HOME": cache}

    def timed(self, what: str, *words: str | Path) -> str:
        """`gpufleet WORDS`, which must succeed."""
        began = time.monotonic()
        done = self.gpufleet(*map(str, words))
        self.numbers[f"{what}, seconds"] = round(time.monotonic() - began)
        assert done.returncode == 0, done.stdout
        return str(done.stdout)

    @contextmanager
    def serving(self, made: Path) -> Iterator[None]:
        """The hosts reach this bundle, and not the mirror."""
        gateway = self.box.host("mirror").gateway
        words = [str(GPUFLEET), "bundle", "serve", str(made), "--bind", gateway]
        words += ["--port", str(self.port)]
        log = self.folder / "serve.log"
        with (
            log.open("w") as errors,
            subprocess.Popen(
                words, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as server,
            self.box.host("mirror").fault("down"),
        ):
            try:
                self.served = dict(_keys(server))
                url = self.served["driver_repo_url"].partition("/mirror/")[0]
                self.port = int(url.rpartition(":")[2])
                self.replace_in_sources("http://mirror/", f"{url}/mirror/")
                yield
                self.replace_in_sources(f"{url}/mirror/", "http://mirror/")
            finally:
                self.served = {}
                server.terminate()

    def replace_in_sources(self, old: str, new: str) -> None:
        """The address of the hosts' package sources."""
        for name in NAMES:
            edit = f"xargs -r sed -i 's,{old},{new},'"
            self.host(name).run(f"grep -rl {old} /etc/apt | {edit}")


def _keys(server: subprocess.Popen[str]) -> Iterator[tuple[str, Any]]:
    """The keys that a server prints, up to the line about the wheels."""
    assert server.stdout
    for line in server.stdout:
        if line.startswith('"'):
            yield from json.loads(f"{{{line.strip().rstrip(',')}}}").items()
        if line.startswith("# gpufleet:"):
            return


def size_of(path: Path) -> int:
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


@pytest.fixture(scope="module")
def hosts(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    folder = tmp_path_factory.mktemp("closed")
    write_running_charts(folder / "charts")
    with bare_hosts(f"{RUN}-closed-{worker_id}", dict.fromkeys(NAMES, 1)) as box:
        found = Closed([], folder, box=box, charts=folder / "charts")
        yield found
        print(json.dumps(found.numbers, indent=1))  # shown by -s


@pytest.mark.claim(
    "A killed `bundle create` leaves no manifest. The same command goes on, and ends with a whole "
    "bundle.",
    level=3,
)
def test_a_killed_creation_goes_on(hosts: Closed) -> None:
    made = hosts.folder / "first"
    words = [str(GPUFLEET), "bundle", "create", hosts.inventory(), "--output", str(made)]
    kills = [killed(words, seconds, hosts.environment, ROOT) for seconds in range(1, 1 + KILLS)]
    assert any(kills)
    if kills[-1]:
        assert "GF671" in hosts.gpufleet("bundle", "verify", str(made)).stdout
    hosts.timed("bundle create", "bundle", "create", hosts.inventory(), "--output", made)
    hosts.timed("bundle verify", "bundle", "verify", made)
    found = json.loads((made / "manifest.json").read_text())
    assert found["lacking"] == []
    hosts.numbers |= {"kills": sum(kills), "bundle, MB": size_of(made) // 10**6}
    sorts = Counter(each["sort"] for each in found["files"])
    hosts.numbers |= {f"files, {name}": number for name, number in sorts.items()}


@pytest.mark.claim(
    "Hosts that reach nothing but a bundle become a cluster with a GPU stack, and change their "
    "driver with the update that `bundle diff` writes.",
    level=3,
)
def test_a_cluster_is_made_and_upgraded_from_bundles_alone(hosts: Closed) -> None:
    first, second = hosts.folder / "first", hosts.folder / "second"
    if not (first / "manifest.json").exists():  # this test alone
        hosts.timed("bundle create", "bundle", "create", hosts.inventory(), "--output", first)
    with hosts.serving(first):
        done = hosts.timed("cluster create", "cluster", "create", hosts.inventory(), "--yes")
        assert "Checks" in done
        for name in NAMES:
            assert loaded(hosts.host(name)) == OLD

    shutil.copytree(first, second)
    hosts.driver = NEW  # a bundle of nodes at work: the images, and the driver of both versions
    hosts.timed("bundle create, again", "bundle", "create", hosts.inventory(), "--output", second)
    update = hosts.folder / "update.tar"
    words = ("bundle", "diff", first, second, "--output", update, "--json")
    found = json.loads(hosts.timed("bundle diff", *words))
    assert found["removed"] == [], "packages to roll back to"
    sizes = Counter({"archive": update.stat().st_size})
    for each in found["added"]:
        sizes[each["sort"]] += each["size"]
    hosts.numbers |= {f"update, {name}, bytes": size for name, size in sizes.items()}
    # a changed checkout has another wheel
    assert sizes["package"] < sizes["archive"] - sizes["wheel"] < SHARE * sizes["package"]

    hosts.driver = OLD
    with tarfile.open(update) as archive:
        archive.extractall(first, filter="data")
    hosts.timed("bundle verify, updated", "bundle", "verify", first)
    with hosts.serving(first):
        for name in NAMES:
            hosts.host(name).run("apt-get clean")  # packages to roll back to come from the bundle
        hosts.timed("upgrade", "upgrade", "start", hosts.inventory(), "--to", NEW, "--yes")
        for name in NAMES:
            hosts.assert_in_service(name, NEW)
        hosts.driver = NEW
        hosts.timed("verify", "verify", hosts.inventory())


@pytest.mark.claim(
    "`bundle push` copies images and charts to a registry, with their digests.", level=3
)
def test_a_bundle_is_pushed_to_a_registry(
    hosts: Closed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hosts.folder / "second"
    program = debian_program("docker-registry", "docker-registry")
    client = tmp_path / "bin/helm"
    client.parent.mkdir()
    client.symlink_to(helm(3, print))
    monkeypatch.setenv("PATH", f"{client.parent}:{os.environ['PATH']}")
    with registry(program, tmp_path) as found:
        words = ("bundle", "push", str(made), f"{found.host}/closed", "--plain-http")
        done = hosts.gpufleet(*words)
        assert done.returncode == 0, done.stdout
        assert f'"oci://{found.host}/closed/charts"' in done.stdout
        assert f"http://{found.host}/v2/closed/registry.k8s.io" in done.stdout
        for each in json.loads((made / "manifest.json").read_text())["files"]:
            if each["sort"] == "image":
                name = each["path"].removeprefix("v2/").replace("/manifests/", ":")
                look = ["skopeo", "inspect", "--tls-verify=false", "--format", "{{.Digest}}"]
                look.append(f"docker://{found.host}/closed/{name}")
                shown = subprocess.run(look, check=True, capture_output=True, text=True).stdout
                assert shown.strip() == each["version"]
        chart = f"oci://{found.host}/closed/charts/nvidia-device-plugin"
        subprocess.run(
            [client, "show", "chart", chart, "--plain-http"], check=True, capture_output=True
        )
