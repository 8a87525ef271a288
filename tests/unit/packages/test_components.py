"""Enabling components of the distribution's own archive without changing existing files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpufleet.facts.model import ManagedFile, NodeFacts, OsRelease
from gpufleet.packages.apt_sources import read_entries
from gpufleet.packages.components import component_sources
from tests.unit.hosts import bare_host

WANTED = ("contrib", "non-free")
LIST = "/etc/apt/sources.list"
DEBIAN = f"{LIST}.d/debian.sources"
DEB822 = """Types: deb
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg
"""
INLINE_KEY = """\
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 Comment: a key of the source itself
 .
 mDMEaSHFXBYJKwYBBAHaRw8BAQdA3QqPzKq0vFz4u1f0lq1XyWkq3uJf
 =abcd
 -----END PGP PUBLIC KEY BLOCK-----
"""


def debian(**files: str) -> NodeFacts:
    """A Debian 12 host with source files, by path."""
    return bare_host(
        os=OsRelease("debian", "12", (), "bookworm", "Debian 12"),
        files={path: ManagedFile(path, text) for path, text in files.items()},
    )


def written(path: str, text: str, *third_parties: str) -> str:
    """The file planned for a host with one source file, without its first line."""
    found = component_sources(WANTED, debian(**{path: text}), third_parties)
    return str(found.content).split("\n", 1)[1] if found else ""


def stanza(*options: str, url: str = "http://a/debian", suites: str = "bookworm") -> str:
    rows = ["Types: deb", f"URIs: {url}", f"Suites: {suites}", "Components: contrib non-free"]
    return "\n".join([*rows, *options, ""])


def test_missing_components_are_added_for_every_suite() -> None:
    assert written(DEBIAN, DEB822) == stanza(
        "Signed-By: /usr/share/keyrings/debian.gpg",
        url="http://archive.example/debian",
        suites="bookworm bookworm-updates",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deb http://a/debian bookworm main\n", stanza()),
        ("deb http://a/debian bookworm main # the whole of it\n", stanza()),
        ("deb\thttp://a/debian  bookworm main\n", stanza()),
        (
            "deb http://a/debian bookworm main contrib\n",
            stanza().replace("contrib ", ""),
        ),
        ("deb http://a/debian bookworm main contrib non-free\n", ""),
        ("deb http://a/debian bookworm main\ndeb http://a/debian/ bookworm contrib non-free\n", ""),
        ("# deb http://a/debian bookworm main\n", ""),
        ("deb-src http://a/debian bookworm main\n", ""),
        ("deb http://a/debian/ ./\n", ""),
        ("deb cdrom:[Debian 12 _Bookworm_ - Official amd64 DVD]/ bookworm main contrib\n", ""),
        ("deb cdrom:[Debian]/ bookworm main contrib\n", ""),
        ("deb http://a/debian trixie main\n", ""),
        (
            "deb [arch=amd64,i386 signed-by=/k.gpg trusted=yes] http://a/debian bookworm main\n",
            stanza("Architectures: amd64 i386", "Signed-By: /k.gpg", "Trusted: yes"),
        ),
        (
            "deb [ by-hash=no arch-=i386 ] http://a/debian bookworm main\n",
            stanza("By-Hash: no", "Architectures-Remove: i386"),
        ),
        ("deb http://a/debian stable main\n", stanza(suites="stable")),
    ],
)
def test_one_line_sources(text: str, expected: str) -> None:
    assert written(LIST, text) == expected


@pytest.mark.parametrize(
    "switched_off", ["Enabled: no\n", "Enabled: False\n", "Types: deb-src\n", "Suites: trixie\n"]
)
def test_a_source_that_is_switched_off_does_not_count(switched_off: str) -> None:
    assert written(DEBIAN, DEB822 + switched_off) == ""


LINES = """\
# deb http://a/debian bookworm contrib
deb [ arch=amd64 ] http://s/security bookworm-security main # contrib
deb-src http://a/debian bookworm contrib
\tdeb http://a/debian bookworm main non-free

deb
deb http://a/debian
bookworm-backports main
deb http://a/debian bookworm-updates main
"""


def test_each_line_is_a_source_of_its_own() -> None:
    found = read_entries(debian(**{LIST: LINES}).files)
    binary = [entry for entry in found if entry.binary]
    assert [(entry.url, entry.suite, entry.components) for entry in binary] == [
        ("http://s/security", "bookworm-security", ("main",)),
        ("http://a/debian", "bookworm", ("main", "non-free")),
        ("http://a/debian", "bookworm-updates", ("main",)),
    ]
    text = written(LIST, LINES)
    assert (
        "URIs: http://s/security\nSuites: bookworm-security\nComponents: contrib non-free" in text
    )
    assert "URIs: http://a/debian\nSuites: bookworm\nComponents: contrib\n" in text
    assert "Suites: bookworm-updates\nComponents: contrib non-free" in text


def test_options_of_the_stanza_stay_with_an_inline_key() -> None:
    head = DEB822.rpartition("Signed-By")[0].replace("Components", "Trusted: no\nComponents")
    text = f"# a comment\n{head}{INLINE_KEY}X-Repolib-Name: Debian\n"
    assert written(DEBIAN, text).endswith(f"Trusted: no\n{INLINE_KEY}")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{LIST}.d/other-ppa.list", "deb http://ppa.example/x/ubuntu bookworm main\n"),
        (f"{LIST}.d/other-ppa.sources", DEB822),
        (f"{LIST}.d/docker.list", "deb [arch=amd64] https://docker.example bookworm stable\n"),
        (LIST, "deb http://ppa.example/x/ubuntu bookworm main\n"),
    ],
)
def test_sources_of_third_parties_are_not_copied(path: str, text: str) -> None:
    """A PPA has the suite and the component of the distribution's own archive."""
    assert written(path, text, "//ppa[.]example/") == ""


def test_the_distributions_keyring_identifies_its_archive_in_any_file() -> None:
    text = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a bookworm main\n"
    assert "URIs: http://a\n" in written(f"{LIST}.d/company.list", text)


@pytest.mark.skipif(not shutil.which("apt-get"), reason="reads the result with this machine's apt")
@pytest.mark.parametrize("signed_by", ["Signed-By: /usr/share/keyrings/debian.gpg\n", INLINE_KEY])
def test_apt_reads_what_is_written_and_what_was_there(tmp_path: Path, signed_by: str) -> None:
    there = DEB822.rpartition("Signed-By")[0] + "Architectures: amd64\n" + signed_by
    found = component_sources(WANTED, debian(**{DEBIAN: there}))
    assert found
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "debian.sources").write_text(there)
    (tmp_path / "parts" / Path(found.path).name).write_text(str(found.content))
    places = ("sourcelist=/dev/null", f"sourceparts={tmp_path / 'parts'}")
    words = [word for place in places for word in ("-o", f"Dir::Etc::{place}")]
    command = ["apt-get", *words, "update", "--print-uris"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("InRelease'") == 2, "one per suite: both files agree on the options"


def test_a_login_is_copied_only_for_root() -> None:
    plain, login = "deb http://a/debian bookworm main\n", "deb http://u:pw@a/debian bookworm main\n"
    found = [component_sources(WANTED, debian(**{LIST: text})) for text in (plain, login)]
    assert [each.mode for each in found if each] == [0o644, 0o600]


def test_nothing_wanted_is_nothing_written() -> None:
    assert component_sources((), debian(**{LIST: "deb http://a/debian bookworm main\n"})) is None
