"""Programs of test clusters: official binaries if available, else built from source; cached."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpufleet.core.findings import Finding
from gpufleet.core.visible import Lines
from gpufleet_sandbox.cluster import official
from gpufleet_sandbox.cluster.cached import is_verified, mark_verified
from gpufleet_sandbox.cluster.kubernetes_source import edit, repair, replacements
from gpufleet_sandbox.cluster.modules import OwnModule
from gpufleet_sandbox.cluster.official import Binary, NotFetched, WrongChecksum
from gpufleet_sandbox.cluster.openapi import generate_definitions
from gpufleet_sandbox.cluster.versions import Program, minor_of, versions
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.golang import go_command, go_environment
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.notices import notice

VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
FETCHES_AT_ONCE = 4
OWN = "program"  # folder of our own program in its module
Progress = Callable[[str], None]


def kubernetes_servers(
    names: Sequence[str], version: str, home: Path, progress: Progress
) -> dict[str, Path]:
    """Servers of a Kubernetes release (1.36.3), name -> binary. The first call takes minutes.

    SandboxError GF654 if one can be neither fetched nor built.
    """
    target = home / f"kubernetes-{version}"
    with exclusive(home, target.name, progress), _build_errors(f"Kubernetes {version}"):
        known = {name: official.server(name, version) for name in names}
        sources = {
            name: source
            for name, source in known.items()
            if not _is_cached(target / name, source, progress)
        }
        missing = _fetch(f"Kubernetes {version}", sources, target, progress)
        if missing:
            progress(f"building Kubernetes {version} from its Go module: about 10 minutes, once")
            module = _own_module(home, target.name, progress)
            cache = str(_cache_of(home, target.name))
            own = replace(module, environment={**module.environment, "GOCACHE": cache})
            _build_servers(missing, version, target, own)
        # gigabytes of this or an interrupted build that no other release can use
        shutil.rmtree(_cache_of(home, target.name), ignore_errors=True)
        for name, source in sources.items():
            mark_verified(target / name, version, "" if name in missing else _digest(source))
    return {name: target / name for name in names}


def program(name: str, home: Path, progress: Progress) -> Path:
    """The binary of a program of versions.yaml. SandboxError GF654 if it cannot be built."""
    wanted = versions().programs[name]
    target = home / f"{name}-{wanted.built_from}" / name
    with exclusive(home, name, progress), _build_errors(f"{name} {wanted.version}"):
        source = official.program(name, wanted.version)
        if not _is_cached(target, source, progress):
            missing = _fetch(f"{name} {wanted.version}", {name: source}, target.parent, progress)
            if missing:
                progress(f"building {name} {wanted.version} from its Go module")
                _build_program(wanted, target, _own_module(home, target.parent.name, progress))
            mark_verified(target, wanted.prints, "" if missing else _digest(source))
    return target


def module_folder(name: str, home: Path, progress: Progress) -> Path:
    """The source of the module of a program of versions.yaml, fetched if the cache lacks it.
    SandboxError GF654 if it is not served."""
    wanted = versions().programs[name]
    with _build_errors(f"{name} {wanted.version}"):
        module = OwnModule(go_command(home, progress), home, go_environment(home), progress)
        found = module.download(wanted.module, wanted.version)
        if "Error" in found:
            raise SandboxError(kinds.NOT_SERVED(module=wanted.module, reason=found["Error"]))
    return Path(found["Dir"])


def have_program(name: str, home: Path) -> bool:
    """True if the cache has the program."""
    wanted = versions().programs[name]
    source = official.program(name, wanted.version)
    return is_verified(home / f"{name}-{wanted.built_from}" / name, _digest(source))


def have_server(name: str, version: str, home: Path) -> bool:
    """True if the cache has a server of a Kubernetes release."""
    source = official.server(name, version)
    return is_verified(home / f"kubernetes-{version}" / name, _digest(source))


def _digest(source: Binary | None) -> str:
    return source.sha256 if source else ""


def _is_cached(path: Path, source: Binary | None, progress: Progress) -> bool:
    """True if the cache has a program; reports one that cannot be used."""
    if is_verified(path, _digest(source)):
        return True
    if path.exists():
        why = "damaged, from an older gpufleet, or its checksum was corrected since"
        progress(f"{path} is {why}; replacing it")
    return False


def _fetch(
    what: str, sources: dict[str, Binary | None], target: Path, progress: Progress
) -> list[str]:
    """Fetch the official binaries. Returns the names of those that must be built."""

    def reason(name: str) -> str:
        source = sources[name]
        if source is None:
            return f"official.yaml has no checksum of {name}"
        try:
            official.fetch(source, target / name)
        except WrongChecksum as error:
            wrong.append(kinds.OFFICIAL_CHECKSUM(what=name, reason=error))
            return str(error)
        except NotFetched as error:
            return str(error)
        return ""

    wrong: list[Finding] = []

    known = [name for name, source in sources.items() if source]
    if known:
        progress(f"fetching {what}: {', '.join(known)}")
    with ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
        reasons = dict(zip(sources, pool.map(reason, sources), strict=True))
    for text in sorted({text for text in reasons.values() if text}):
        progress(text)
    for finding in wrong:
        notice(finding)
    return [name for name, text in reasons.items() if text]


def _build_servers(names: Sequence[str], version: str, target: Path, module: OwnModule) -> None:
    kubernetes = versions().kubernetes.module
    packages = {name: f"{kubernetes}/cmd/{name}" for name in names}
    module.progress(f"resolving the modules of Kubernetes {version}")
    require = f"{kubernetes}@v{version}"
    module.create(list(packages.values()), require, replacements(module, version))
    repair(module, version)
    generate_definitions(module)
    flags = f"-checklinkname=0 {_stamp(version)}"
    module.build(f"Kubernetes {version}", packages, target, flags)
    shutil.rmtree(module.folder)


def _stamp(version: str) -> str:
    """Linker flags that set the version: without them a server reports v0.0.0, and the kubeVersion
    checks of charts fail."""
    variables = {
        "gitVersion": f"v{version}", "gitMajor": "1", "gitMinor": str(minor_of(version)),
        "gitTreeState": "clean",
    }  # fmt: skip
    stamps = [
        f"-X {package}.{name}={value}"
        for package in VERSION_PACKAGES
        for name, value in variables.items()
    ]
    return " ".join(["-s -w", *stamps])


def _build_program(wanted: Program, target: Path, module: OwnModule) -> None:
    if wanted.static:
        module = replace(module, environment={**module.environment, "CGO_ENABLED": "0"})
    if wanted.local:
        (module.folder / OWN).mkdir(parents=True)
        shutil.copy(wanted.local_source, module.folder / OWN / "main.go")
    packages = [] if wanted.local else [wanted.package]
    module.create(packages, f"{wanted.module}@{wanted.version}", wanted.replace)
    if wanted.edits:
        edit(module, wanted.module, wanted.edits)
    stamp = f" -X {wanted.stamp}={wanted.version}" if wanted.stamp else ""
    flags = f"-s -w {wanted.linker}{stamp}"
    output = {target.name: wanted.package}
    module.build(target.name, output, target.parent, flags, wanted.tags)
    shutil.rmtree(module.folder)


def _cache_of(home: Path, name: str) -> Path:
    """The build cache of one release; an interrupted build resumes with it."""
    return home / "modules" / f"{name}.build"


def _own_module(home: Path, name: str, progress: Progress) -> OwnModule:
    environment = go_environment(home, "-buildvcs=false -mod=mod")
    folder = home / "modules" / name
    shutil.rmtree(folder, ignore_errors=True)
    return OwnModule(go_command(home, progress), folder, environment, progress)


@contextmanager
def _build_errors(what: str) -> Iterator[None]:
    try:
        yield
    except SandboxError as error:
        raise SandboxError(
            kinds.NOT_BUILT(what=what, reason=Lines(error.finding.message))
        ) from error
