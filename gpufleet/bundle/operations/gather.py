"""Downloads the packages of a request on a host, and hands them over with their signed lists."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from pyinfra.api import FactBase, StringCommand

from gpufleet.bundle import findings
from gpufleet.bundle.lists import (
    LIST_ERRORS,
    HostFile,
    RpmRepository,
    apt_packages,
    cached_repositories,
    has_package,
    list_file,
    listed_packages,
    read_host_files,
    repository_urls,
    without_sha256,
)
from gpufleet.bundle.models import BundleFile, LackingItem
from gpufleet.bundle.operations.store import has_file, store_file
from gpufleet.bundle.plan import PresentPackages
from gpufleet.core.entries import PackageManager
from gpufleet.core.limits import MIB
from gpufleet.core.quoting import quote_field
from gpufleet.core.secrets import plain_urls
from gpufleet.core.stopped import Stopped
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.reading import FactReader
from gpufleet.host.shell import script_command

APT_DOWNLOADS = 50  # packages that one command downloads
PRESENT_REMEDY = "Before an upgrade, check that the cache of the hosts' package manager has them."
KUBEADM = "kubeadm"  # package
LIST_COMMAND = "kubeadm config images list --kubernetes-version VERSION"
PIECE_BYTES = 8 * MIB  # of a file on a host, in one answer


class ScriptLines(FactBase[list[str]]):
    """The lines of a script of this room."""

    def command(self, script: str, *arguments: str) -> StringCommand:
        return frame_command(script_command(f"bundle/{script}", *arguments))

    def process(self, output: Iterable[str]) -> list[str]:
        lines = framed_answer(output)
        return ["error the host did not respond"] if lines is None else lines


class FilePiece(FactBase[bytes]):
    """One piece of a file on a host; b"" after its end, or if it was cut off."""

    def command(self, path: str, number: int) -> StringCommand:
        how = (path, str(number), str(PIECE_BYTES))
        return frame_command(script_command("bundle/read_piece", *how))

    def process(self, output: Iterable[str]) -> bytes:
        try:
            return base64.b64decode("".join(framed_answer(output) or ()), validate=True)
        except binascii.Error:
            return b""


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """The packages to download on a host. `words`: of each transaction; `gone`: packages that
    count as absent; `place`: a folder on the host, removed afterwards."""

    manager: PackageManager
    words: tuple[tuple[str, ...], ...]
    gone: str
    place: str


def gather_packages(folder: Path, request: PackageRequest, ask: FactReader) -> list[BundleFile]:
    """Store packages and lists in the bundle's folder. Raises Stopped."""
    gather = _gather_apt if request.manager == "apt" else _gather_rpm
    return gather(folder, request, ask)


def gather_present(
    folder: Path, request: PackageRequest, present: PresentPackages, ask: FactReader
) -> tuple[list[BundleFile], tuple[LackingItem, ...]]:
    """Store installed packages of a role, or say why the repositories do not have them: an upgrade
    then takes them from the cache of the host's package manager, or changes nothing. Raises
    Stopped."""
    place, gone = f"{request.place}/{present.role}", " ".join((request.gone, *present.names))
    own = replace(request, words=(present.words,), gone=gone, place=place)
    try:
        return gather_packages(folder, own, ask), ()
    except Stopped as stopped:
        (found, *_) = stopped.findings
        if found.code != findings.PACKAGES_NOT_LISTED.code:
            raise
        what = f"the installed packages of the {present.role}, for a roll-back"
        return [], (LackingItem(what, found.message, PRESENT_REMEDY),)


def _gather_apt(folder: Path, request: PackageRequest, ask: FactReader) -> list[BundleFile]:
    place, how = request.place, (request.place, request.gone)
    asked = (_lines(request, ask, "apt_closure", *how, *words) for words in request.words)
    lines = [*chain.from_iterable(asked)]
    _require_known(without_sha256(lines))
    packages = apt_packages(lines)
    _require_places(packages)
    lists = read_host_files(_lines(request, ask, "apt_lists", f"{place}/lists"), "list")
    used = [each for each in lists if has_package(each.base, packages)]
    missing = [file for file in packages if not has_file(folder, file)]
    for start in range(0, len(missing), APT_DOWNLOADS):
        some = missing[start : start + APT_DOWNLOADS]
        pairs = [word for file in some for word in (file.source, file.sha256)]
        _lines(request, ask, "apt_fetch", place, *pairs)
        for file in some:
            store_file(folder, file, _pieces(ask, f"{place}/{file.sha256}"))
    return [*packages, *_store_lists(folder, used, ask)]


def _gather_rpm(folder: Path, request: PackageRequest, ask: FactReader) -> list[BundleFile]:
    how = (request.manager, request.gone)
    asked = (
        _lines(request, ask, "rpm_closure", f"{request.place}/{number}", *how, *words)
        for number, words in enumerate(request.words)
    )
    lines = [*chain.from_iterable(asked)]
    cached = {each.path: each for each in read_host_files(lines, "metadata")}
    repositories = cached_repositories(cached.values(), repository_urls(lines))
    known: dict[str, BundleFile] = {}
    for each in repositories:
        known |= _listed(each, ask)
    found = {each.sha256: each for each in read_host_files(lines, "package")}
    _require_known(
        [each.path.rpartition("/")[2] for each in found.values() if each.sha256 not in known]
    )
    packages = [known[digest] for digest in found]
    _require_places(packages)
    for file in packages:
        if not has_file(folder, file):
            store_file(folder, file, _pieces(ask, found[file.sha256].path))
    used = (each for each in repositories if has_package(each.url, packages))
    lists = [file for each in used for file in each.files]
    return [*packages, *_store_lists(folder, lists, ask)]


def list_kubeadm_images(
    files: Sequence[BundleFile], request: PackageRequest, ask: FactReader
) -> tuple[list[str], tuple[LackingItem, ...]]:
    """The images of a control plane, as the kubeadm that was downloaded names them, or why it does
    not; nothing without a kubeadm. Raises Stopped."""
    package = next((each for each in files if each.name == KUBEADM), None)
    if package is None:
        return [], ()
    name = package.path.rpartition("/")[2]
    if request.manager == "apt":  # a file that the bundle had was not downloaded
        name = package.sha256
        _lines(request, ask, "apt_fetch", request.place, package.source, name)
    words = [
        line.partition(" ") for line in ask(ScriptLines, "kubeadm_images", request.place, name)
    ]
    why = [quote_field(text) for kind, _, text in words if kind == "error"]
    remedy = f"Run `{LIST_COMMAND}` where kubeadm runs, and mirror these images yourself."
    lacking = tuple(LackingItem("images of Kubernetes", each, remedy) for each in why)
    return [text for kind, _, text in words if kind == "image"], lacking


def _lines(request: PackageRequest, ask: FactReader, script: str, *words: str) -> list[str]:
    """The lines of a script. Raises Stopped for its error."""
    lines = ask(ScriptLines, script, *words)
    for line in lines:
        if line.startswith("error "):
            problem = plain_urls(line.removeprefix("error ").strip())
            raise Stopped(findings.PACKAGES_NOT_LISTED(manager=request.manager, problem=problem))
    return lines


def _listed(repository: RpmRepository, ask: FactReader) -> dict[str, BundleFile]:
    """sha256 -> package of a repository. Raises Stopped."""
    primary = repository.primary
    if primary is None:
        raise Stopped(findings.SOURCE_UNKNOWN(what=f"the list of {repository.url}"))
    data = b"".join(_pieces(ask, primary.path))
    try:
        return listed_packages(repository.url, data, primary.path)
    except LIST_ERRORS as error:
        what = f"the list of {repository.url} ({error})"
        raise Stopped(findings.SOURCE_UNKNOWN(what=what)) from error


def _store_lists(folder: Path, used: Sequence[HostFile], ask: FactReader) -> Iterator[BundleFile]:
    """Store metadata, signed as its repository has it."""
    for each in used:
        file = list_file(each)
        _require_places([file])
        if not has_file(folder, file):
            store_file(folder, file, _pieces(ask, each.path))
        yield file


def _require_places(files: Sequence[BundleFile]) -> None:
    """Raises Stopped if a file has no path in a bundle."""
    _require_known([file.source for file in files if not file.path])


def _require_known(lost: Sequence[str]) -> None:
    if lost:
        raise Stopped(findings.SOURCE_UNKNOWN(what=plain_urls(", ".join(lost))))


def _pieces(ask: FactReader, path: str) -> Iterator[bytes]:
    """The content of a file on the host."""
    number = 0
    while piece := ask(FilePiece, path, number):
        yield piece
        number += 1
        if len(piece) < PIECE_BYTES:
            return
