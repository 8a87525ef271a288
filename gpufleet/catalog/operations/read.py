"""Reads sources. The failure of one never stops the others."""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urljoin

from gpufleet.catalog import parse
from gpufleet.catalog.models import LiveSource, Reading, Unread
from gpufleet.catalog.parse import BrokenSource
from gpufleet.catalog.sources import mirrored_url
from gpufleet.core.limits import MIB, Limit
from gpufleet.core.quoting import quote_field
from gpufleet.core.secrets import plain_urls
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.packages.logins import RepositoryLogin
from gpufleet.packages.operations.download import DownloadFailed, download_url, same_origin

# The lists of NVIDIA's repositories have at most some MB.
SOURCE_LIMIT = Limit("a source of the catalog", 64 * MIB, 120)
UNPACKED_LIST = 256 * MIB  # of a compressed list of packages
READERS = 8  # sources that are read at the same time
HASHES = {40: "sha1", 128: "sha512"}  # digits of a checksum -> its algorithm
OTHER_PACKERS = (".bz2", ".xz", ".zck", ".zst")  # of createrepo_c
READ_FAILURES = (DownloadFailed, BrokenSource)


class SourceReader:
    """Reads sources, or their copies on a mirror."""

    def __init__(
        self, charts: ChartCatalog, mirror: str = "", login: RepositoryLogin | None = None
    ) -> None:
        self.charts, self.mirror, self.login = charts, mirror, login

    def read_all(
        self, sources: Sequence[LiveSource], done: Callable[[], None]
    ) -> Iterator[Reading | Unread]:
        """Each source's content, or why it was not read. `done`: called after each source.

        Daemon threads read, so that Ctrl+C does not wait for a server.
        """
        waiting: SimpleQueue[LiveSource] = SimpleQueue()
        results: SimpleQueue[Reading | Unread] = SimpleQueue()
        for source in sources:
            waiting.put(source)

        def work() -> None:
            with suppress(Empty):
                while True:
                    results.put(self._read(waiting.get_nowait()))

        for _ in range(min(READERS, len(sources))):
            threading.Thread(target=work, daemon=True).start()
        for _ in sources:
            yield results.get()
            done()

    def _read(self, source: LiveSource) -> Reading | Unread:
        url = source.url
        try:
            url = mirrored_url(source.url, self.mirror)
            return Reading(source, self._content(source, url))
        except Exception as error:  # noqa: BLE001 the boundary of one source
            known = isinstance(error, READ_FAILURES)
            why = str(error) if known else f"{type(error).__name__}: {error}"
            reason = quote_field(plain_urls(why))
            return Unread(source, url, reason)

    def _content(self, source: LiveSource, url: str) -> Any:
        data = self._get(url)
        if source.kind == "rpm":
            return self._rpm(url, data)
        if source.kind == "index":
            names = [
                name
                for name, chart in self.charts.charts.items()
                if chart.repository == source.about
            ]
            return parse.parse_charts(data, names)
        if source.kind == "chart":
            return {source.about: parse.parse_chart_file(data)}
        return PARSERS[source.kind](data)

    def _rpm(self, url: str, data: bytes) -> Any:
        place, digest = parse.find_primary(data)
        packed = self._get(urljoin(url.removesuffix("repodata/repomd.xml"), place))
        if digest != hashlib.new(HASHES.get(len(digest), "sha256"), packed).hexdigest():
            raise BrokenSource(f"the checksum of {place} is not the one in repomd.xml")
        return parse.parse_rpm_packages(_plain_list(place, packed))

    def _get(self, url: str) -> bytes:
        login = self.login if self.mirror and same_origin(url, self.mirror) else None
        return download_url(url, SOURCE_LIMIT, login)


PARSERS: dict[str, Callable[[bytes], Any]] = {
    "deb": parse.parse_deb_packages,
    "key": parse.parse_key,
    "schedule": parse.parse_schedule,
    "cycles": parse.parse_cycles,
    "releases": parse.parse_driver_releases,
}


def _plain_list(place: str, data: bytes) -> bytes:
    """The XML of a list of packages. Raises BrokenSource."""
    if place.endswith(".gz"):
        return _unpacked(data)
    if place.endswith(OTHER_PACKERS):
        raise BrokenSource(
            f"{place} is compressed in a way that gpufleet does not read: only .gz and plain XML"
        )
    return data


def _unpacked(data: bytes) -> bytes:
    """The content of a gzip file. Raises BrokenSource if it is damaged or too large."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpacker.decompress(data, UNPACKED_LIST)
    except zlib.error as error:
        raise BrokenSource(f"it cannot be decompressed: {error}") from error
    if not unpacker.eof:
        raise BrokenSource("it is cut off, or unpacks to too much")
    return found
