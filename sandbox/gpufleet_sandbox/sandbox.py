"""A sandbox: hosts, their network and their mirror, started and removed together."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from gpufleet_sandbox import machine, mirror
from gpufleet_sandbox.addresses import free_address, hardware_address
from gpufleet_sandbox.engine import LABEL, Engine, find_engine
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.gpus import Gpus, with_gpus
from gpufleet_sandbox.host import Host
from gpufleet_sandbox.images import Image, ImageStore, Progress, build_base
from gpufleet_sandbox.inotify import raise_limit, restore_limit
from gpufleet_sandbox.keys import install_keys, known_hosts_line, make_key
from gpufleet_sandbox.kinds import GPU_KINDS, KINDS, MIRROR, HostKind
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.paths import cache_dir, state_dir
from gpufleet_sandbox.scenario import write_scenario
from gpufleet_sandbox.state import DEFAULT, HostState, SandboxState, load_state, state_file
from gpufleet_sandbox.waiting import wait_until

STARTS_AT_ONCE = 4
BUILDS_AT_ONCE = 3


def _quiet(_message: str) -> None:
    """Discard progress."""


@dataclass
class Sandbox:
    """A named sandbox. Sandboxes share images and nothing else.

    with_hosts = Sandbox("test").up(["ubuntu2204", "el7"])
    with_hosts.hosts["el7"].run("uname -r")
    """

    name: str = DEFAULT
    progress: Progress = _quiet
    images: str = "auto"  # real, imitation, auto

    @property
    def engine(self) -> Engine:
        return find_engine()

    @property
    def folder(self) -> Path:
        return state_dir(self.name)

    @property
    def is_up(self) -> bool:
        return state_file(self.name).exists()

    @property
    def state(self) -> SandboxState:
        """The content of state.json; GF603 if the sandbox is not up."""
        return load_state(self.name)

    @property
    def hosts(self) -> dict[str, Host]:
        """The hosts by name, including the mirror."""
        return {name: self._host(state) for name, state in self.state.hosts.items()}

    def host(self, name: str) -> Host:
        """One host; GF604 lists the known ones if it does not exist."""
        found = self.hosts
        if name not in found:
            raise SandboxError(kinds.UNKNOWN_HOST(host=name, known=", ".join(found)))
        return found[name]

    def _host(self, state: HostState) -> Host:
        return Host(state, self.name, self.state.subnet, self.engine, self._recreate)

    # -- up ------------------------------------------------------------------------------------

    def up(
        self,
        wanted: Sequence[str] = GPU_KINDS,
        copies: int = 1,
        *,
        with_mirror: bool = True,
        gpus: Mapping[str, Gpus] | None = None,
    ) -> Sandbox:
        """Start `copies` hosts of each kind, and the mirror; running hosts do not change.

        `gpus`: host -> GPUs instead of those of its kind; GF662 if it is up with others. Returns
        when every host responds over SSH and systemd has started all units.
        """
        for kind in wanted:
            if kind not in KINDS:
                raise SandboxError(kinds.UNKNOWN_HOST(host=kind, known=", ".join(KINDS)))
        with exclusive(self.folder, "up", self.progress):
            raise_limit(cache_dir())
            if with_mirror and not (cache_dir() / MIRROR).exists():
                self.progress("the first start builds images and packages, which takes minutes")
            state = self._ready_state()
            self.check_gpus(state, gpus or {})
            names = {MIRROR: MIRROR} if with_mirror else {}
            for kind in wanted:
                names |= {copy_name(kind, number): kind for number in range(copies)}
            images = self._prepare({KINDS[kind] for kind in names.values()}, with_mirror)
            is_real = any(image.is_real for image in images.values())
            state.images = "real" if is_real else "imitation"
            for name, kind in names.items():
                if name not in state.hosts:
                    host = self._new_host(state, name, KINDS[kind], images)
                    state.hosts[name] = replace(host, gpus=str((gpus or {}).get(name, "")))
            self._write_known_hosts(state)
            state.save()
            self._start_all([state.hosts[name] for name in names])
            if with_mirror:
                self.wait_for_mirror()
        return self

    def check_gpus(self, state: SandboxState, gpus: Mapping[str, Gpus]) -> None:
        """SandboxError GF662 if a host that is up has other GPUs."""
        for name, wanted in gpus.items():
            host = state.hosts.get(name)
            if host and host.gpus != str(wanted):
                found = host.gpus or KINDS[host.kind].summary
                raise SandboxError(
                    kinds.OTHER_GPUS(host=name, found=found, wanted=wanted, name=self.name)
                )

    def _ready_state(self) -> SandboxState:
        if self.is_up:
            return self.state
        network = f"gpufleet-{self.name}"
        subnet = self.engine.network(network, self.name)
        return SandboxState(self.name, self.engine.name, "imitation", network, subnet)

    def _prepare(self, wanted: set[HostKind], with_mirror: bool) -> dict[str, Image]:
        """Build images and the mirror, in parallel where possible. Returns images by name."""
        by_image = {kind.image: kind for kind in sorted(wanted, key=lambda kind: kind.name)}
        with ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
            base = pool.submit(build_base, self.engine, cache_dir(), self.progress)
            tree = pool.submit(mirror.build, cache_dir(), self.progress) if with_mirror else None
            machine_dir = machine.build(cache_dir())
            base.result()
            store = ImageStore(self.engine, cache_dir(), machine_dir, self.progress, self.images)
            images = dict(zip(by_image, pool.map(store.image, by_image.values()), strict=True))
            if tree is not None:
                tree.result()
        return images

    def _new_host(
        self, state: SandboxState, name: str, kind: HostKind, images: dict[str, Image]
    ) -> HostState:
        used = [host.address for host in state.hosts.values()]
        return HostState(
            name=name,
            kind=kind.name,
            address=free_address(state.subnet, used),
            container=f"gpufleet-{self.name}-{name}",
            image=images[kind.image].tag,
            key=str(self.folder / "id_ed25519"),
            known_hosts=str(self.folder / "known_hosts"),
            user=kind.user,
        )

    def _host_key(self, name: str) -> Path:
        return self.folder / "host-keys" / name / "ssh_host_ed25519_key"

    def _write_known_hosts(self, state: SandboxState) -> None:
        make_key(self.folder / "id_ed25519", f"gpufleet sandbox {self.name}")
        lines = [
            known_hosts_line(host.address, make_key(self._host_key(name), name))
            for name, host in state.hosts.items()
        ]
        (self.folder / "known_hosts").write_text("".join(lines))

    def _start_all(self, hosts: Sequence[HostState]) -> None:
        """Start the hosts, the mirror first: other hosts may use it as soon as they are up."""
        self.progress(f"starting {len(hosts)} hosts")
        with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
            list(pool.map(self._start, hosts))
        with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
            for host in pool.map(self._wait, hosts):
                self.progress(f"{host.name} is up at {host.address}")

    def _start(self, host: HostState) -> None:
        """Create the host, or start it if this machine has rebooted."""
        if self._existing(host) and self.engine.is_lost(host.container):
            self.progress(f"recreating {host.name}, which was killed together with its monitor")
            self.engine.remove(host.container)
        if not self._existing(host):
            self._create(host)
        elif not self.engine.is_running(host.container):
            self.engine("start", host.container)

    def _wait(self, host: HostState) -> HostState:
        self._host(host).wait_started(seconds=120)
        return host

    def _existing(self, host: HostState) -> list[str]:
        return [name for name in self.engine.containers(self.name) if name == host.container]

    def _create(self, host: HostState) -> None:
        """Create the container of a bare host, with the address and keys in `host`."""
        kind = with_gpus(KINDS[host.kind], host.gpus)
        scenario = self.folder / "hosts" / host.name
        mirror_home = cache_dir() / "mirror"
        known = mirror_home if (mirror_home / "archive-key.gpg").exists() else None
        write_scenario(scenario, kind, known)
        install_keys(scenario, Path(host.key), self._host_key(host.name))
        machine_dir = machine.build(cache_dir())
        words = ["--name", host.container, "--hostname", host.name]
        words += ["--label", f"{LABEL}={self.name}", "--network", f"gpufleet-{self.name}"]
        # with another MAC address, this machine would use the old one for half a minute
        words += ["--mac-address", hardware_address(host.address)]
        words += ["--ip", host.address, *self.engine.host_options()]
        words += ["-v", f"{machine_dir}:/usr/lib/sim:ro", "-v", f"{scenario}:/etc/sim"]
        if kind.name == MIRROR:
            words += [
                "-v",
                f"{mirror_home}:/srv/mirror:ro",
                "-v",
                f"{mirror.SERVER}:/srv/serve.py:ro",
            ]
        else:
            words += ["-v", "/var/lib/docker", "-v", "/var/lib/containerd"]
            if MIRROR in (hosts := self._known_hosts_of_state()):
                words += ["--add-host", f"{MIRROR}:{hosts[MIRROR].address}"]
        self.engine("run", "-d", *words, host.image, "/usr/lib/sim/init")

    def _known_hosts_of_state(self) -> dict[str, HostState]:
        return self.state.hosts if self.is_up else {}

    def _recreate(self, host: HostState) -> None:
        self.engine.remove(*self._existing(host))
        self._create(host)
        self._wait(host)

    # -- down ----------------------------------------------------------------------------------

    def down(self) -> int:
        """Remove containers, network and state; returns the number of hosts.

        Affects only containers with this sandbox's label; images stay in the cache.
        """
        containers = self.engine.containers(self.name)
        self.engine.remove(*containers)
        network = f"gpufleet-{self.name}"
        self.engine("network", "rm", network, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.engine("ps", "-aq", "--filter", f"label={LABEL}").stdout.strip():
            restore_limit(cache_dir())
        return len(containers)

    def remove_images(self) -> int:
        """Remove the hosts' images; returns their number."""
        listed = self.engine("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
        ours = [image for image in listed if image.split("/")[-1].startswith("gpufleet-")]
        if ours:
            self.engine("rmi", *ours)
        return len(ours)

    def wait_for_mirror(self, seconds: float = 20) -> None:
        """Wait until the mirror serves files; its host is up earlier."""
        host = self.host(MIRROR)
        request = "curl -sfo /dev/null http://localhost/"
        wait_until(lambda: host.run(request, check=False).returncode == 0, seconds)


def every_sandbox() -> list[Sandbox]:
    """The sandboxes that this user has started."""
    folder = cache_dir() / "sandbox"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [Sandbox(name) for name in names]


def copy_name(kind: str, number: int) -> str:
    """The name of the host 0, 1, … of a kind."""
    return kind if number == 0 else f"{kind}-{number + 1}"
