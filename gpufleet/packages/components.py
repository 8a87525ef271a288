"""Components of the distribution's archive (contrib, non-free, restricted) to enable."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpufleet.core.secrets import plain_urls
from gpufleet.facts.model import NodeFacts, OsRelease
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.apt_sources import AptSource, read_entries

COMPONENTS_PATH = "/etc/apt/sources.list.d/gpufleet-components.sources"
COMPONENTS_HEAD = "# Written by gpufleet: the driver's packages.\n"
_MOVING = ("stable", "oldstable", "oldoldstable")  # suite names that move between releases
# NAME: ID of /etc/os-release
_OWN_FILES = r"/etc/apt/sources\.list(\.d/NAME\.sources)?"
_OWN_KEYRINGS = r"/usr/share/keyrings/NAME-archive-keyring\.[a-z]+"


def component_sources(
    wanted: tuple[str, ...], facts: NodeFacts, third_parties: Sequence[str] = ()
) -> FileWrite | None:
    """A source file that enables the missing `wanted` components, or None if all are enabled.

    Archives, suites and options are those of the distribution's own `main` on the host.
    `third_parties`: regular expressions of URLs that are never the distribution's.
    """
    entries = [entry for entry in read_entries(facts.files) if entry.binary]
    stanzas: dict[tuple[AptSource, tuple[str, ...]], list[str]] = {}
    for entry in entries:
        if not _is_own(entry, facts.os, third_parties):
            continue
        missing = tuple(name for name in wanted if name not in _open(entry, entries))
        if missing:
            place = AptSource("", entry.url, "", (), entry.options)
            suites = stanzas.setdefault((place, missing), [])
            suites += [entry.suite] if entry.suite not in suites else []
    if not stanzas:
        return None
    written = [_stanza(place, suites, names) for (place, names), suites in stanzas.items()]
    text = COMPONENTS_HEAD + "\n".join(written)
    return FileWrite(COMPONENTS_PATH, text, 0o644 if plain_urls(text) == text else 0o600)


def _is_own(entry: AptSource, os: OsRelease, third_parties: Sequence[str]) -> bool:
    """True if a source is the distribution's own main archive, by its file or its keyring."""
    suite = re.split("[-/]", entry.suite)[0]
    if "main" not in entry.components or suite not in (os.codename, *_MOVING):
        return False
    if any(re.search(pattern, entry.url) for pattern in third_parties):
        return False
    places = ((_OWN_KEYRINGS, entry.option("Signed-By")), (_OWN_FILES, entry.path))
    return any(re.fullmatch(own.replace("NAME", re.escape(os.id)), at) for own, at in places)


def _open(entry: AptSource, entries: Sequence[AptSource]) -> set[str]:
    """Components of the same archive and suite that any source enables."""
    return {
        component
        for other in entries
        if (other.url.rstrip("/"), other.suite) == (entry.url.rstrip("/"), entry.suite)
        for component in other.components
    }


def _stanza(place: AptSource, suites: Sequence[str], components: Sequence[str]) -> str:
    fields = [
        ("Types", "deb"),
        ("URIs", place.url),
        ("Suites", " ".join(suites)),
        ("Components", " ".join(components)),
        *place.options,
    ]
    return "".join(f"{name}: {value}\n".replace(": \n", ":\n") for name, value in fields)
