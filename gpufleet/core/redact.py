"""Text without its secrets, for diffs and error messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from gpufleet.core.secret_forms import INNER, MORE, NAME, QUOTE, mask, without_colors, without_forms

_OPENING = re.compile(r"[\[{][ \t]*\r?\n")
# brackets that count; a text in quotes may have others, and may lack its second quote
_BRACKETS = re.compile(
    r""""(?:\\.|[^"\\\n])*"?|(?<=[\s\[{,:])'[^'\n]*'(?=[ \t]{0,9}(?:[,\]}:\#]|$))|[\[\]{}]""",
    re.MULTILINE,
)
# a line that goes on with a list which is not closed: an item, a bracket, or nothing
_GOES_ON = re.compile(r"""[ \t]*(?:["'\[\]{}][^\n]*)?(?:\n|\Z)""")
# as Kubernetes names parts: tokens[0], parameters[password], env[name="PASSWORD"].value
PART = rf"(?:\[[^\]\n]{{0,99}}\]|{QUOTE}?\](?:\.[\w.-]{{1,99}})?)?"
_HEAD = rf"""["']?{NAME}{PART}{QUOTE}?\s*(?::=|=>|[=:])\s*"""
_VALUE = rf"""{INNER}|"(?:\\.|[^"\\\n])*"(?!\w|[ ]{{0,9}}:){MORE}
    |'[^'\n]*'(?=\s*(?:[,}}\]\#]|$)){MORE}|[^\s"'][^\n]*|["'][^\n]*"""
# what programs say after the name of a file or of a step, where no value has such words; what they
# quote behind it may be the value
_REASON = re.compile(
    r"""(?:unexpected\sstatus|is\s(?:required|invalid|missing|expired|not\s)|failed\sto\s|cannot\s
        |could\snot\s|unable\sto\s|permission\sdenied|no\ssuch\sfile|read-only\sfile\ssystem
        |is\sa\sdirectory|not\sa\sdirectory|not\sfound\b|connection\srefused|input/output\serror
        |(?:true|false|null|<none>)[\s,}\]]*\Z
        |(?:Pre-?)?(?:Depends|Breaks|Conflicts|Recommends|Replaces|Requires|Obsoletes):\s)""",
    re.IGNORECASE | re.VERBOSE,
)
_QUOTES = re.compile(r"""[^\n"'`]{0,300}(["'`])[^\n]{0,300}\1""")
_SOURCE = re.compile(r"\.(?:go|py|rs|cc?|java):\Z")  # a file, before the number of its line
# keys or items of YAML
_ENTRY = re.compile(r"-[ ]|[\"']?[\w.-]{1,99}[\"']?:(?:\s|\Z)")
_FLAGS = re.IGNORECASE | re.VERBOSE | re.MULTILINE
_SECRET = re.compile(rf"(?P<head>{_HEAD})(?P<value>{_VALUE})", _FLAGS)
# what is in a list or an object: a comment, a text in quotes, words without; each may be a key
_ITEM = re.compile(
    r"""(?<!\S)\#[^\n]*|(?P<of_key>:\s{0,9})?
        (?:(?P<text>"(?:\\.|[^"\\\n])*")|'(?P<single>(?:[^'\n]|(?<=\w)'(?=\w))*)'
        |(?P<bare>[^\s"'\[\]{},:\#][^\s\[\]{},:]*))(?P<key>(?=\s{0,9}:))?""",
    re.VERBOSE,
)
_TOKEN_FORM = re.compile(r"(?=\S*\d)\S{8,}")  # a name that is rather a token: `git` is none


def redact(text: str) -> str:
    """`text` with logins, secrets in arguments and in URLs, values of secret-looking keys and
    private keys masked."""
    return "".join(shown for shown, _ in _parts(without_forms(without_colors(text))))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """A text in parts as they are shown, each with the list or the object that it is shown for."""
    at = 0
    while found := _SECRET.search(text, at):
        begin = found.start("value")
        end = end_of_entries(text, found.start(), begin)
        if end < begin or _is_reason(found):
            yield text[at:begin], ""
            at = begin
            continue
        end = max(end, end_of_lines(text, begin))
        yield text[at : found.start()], ""
        if end > begin:
            yield f"{found['head']}***", text[begin:end]
        else:
            yield mask(found), ""
        at = max(end, found.end())
    yield text[at:], ""


def _is_reason(found: re.Match[str]) -> bool:
    """Whether what follows is no value, but why something failed, or the line of a file."""
    if _SOURCE.search(found["head"]):
        return found["value"][0].isdigit()
    reason = found["head"][-1].isspace() and _REASON.match(found["value"])
    return bool(reason) and not _QUOTES.match(found["value"])


def end_of_entries(text: str, key: int, begin: int) -> int:
    """Where the entries of YAML end that a key has on the lines below its own, deeper than it;
    `begin` if there are none, -1 if what is there is the next key, and this one has no value."""
    if "\n" not in text[key:begin] or not _ENTRY.match(text, begin):
        return begin
    start, own = text.rfind("\n", 0, begin) + 1, text.rfind("\n", 0, key) + 1
    if text[own:key].strip(" \t-"):
        return begin
    if begin - start <= key - own:
        return begin if text.startswith("- ", begin) else -1
    deeper = re.compile(rf"(?:[ \t]{{{key - own + 1}}}[^\n]*|[ \t]*)(?:\n|\Z)")
    end = start
    while end < len(text) and (line := deeper.match(text, end)):
        end = line.end()
    return len(text[:end].rstrip())


def end_of_lines(text: str, begin: int) -> int:
    """Where a list or an object over several lines ends that begins there, `begin` if there is
    none. One that is not closed ends before a line that is indented no deeper than its first."""
    if text.startswith("- ", begin):
        return _end_of_items(text, begin)
    if text[begin : begin + 1] not in ("[", "{"):
        return begin
    if (end := _closings(text).get(begin)) and "\n" in text[begin:end]:
        return end
    if end or not (opening := _OPENING.match(text, begin)):
        return begin
    head = text[text.rfind("\n", 0, begin) + 1 : begin]
    deeper = re.compile(rf"[ \t]{{{len(head) - len(head.lstrip()) + 1}}}[^\n]*(?:\n|\Z)")
    end = opening.end()
    while end < len(text) and (line := deeper.match(text, end) or _GOES_ON.match(text, end)):
        end = line.end()
    return end if end == len(text) else end - 1


def _end_of_items(text: str, begin: int) -> int:
    """The same for the items of YAML, which begin on a line of their own."""
    start = text.rfind("\n", 0, begin) + 1
    if not start or text[start:begin].strip():
        return begin
    indent = begin - start
    item = re.compile(rf"(?:[ \t]{{{indent}}}-[ \t]|[ \t]{{{indent + 1}}})[^\n]*(?:\n|\Z)")
    end = start
    while end < len(text) and (line := item.match(text, end)):
        end = line.end()
    return end if end == len(text) and not text.endswith("\n") else end - 1


@lru_cache(maxsize=4)
def _closings(text: str) -> dict[int, int]:
    """Where each bracket is -> where what it opens ends."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    for found in _BRACKETS.finditer(text):
        if found[0] in ("[", "{"):
            opened.append(found.start())
        elif found[0] in ("]", "}") and opened:
            ends[opened.pop()] = found.end()
    return ends


def secrets_in(text: str) -> list[str]:
    """What `redact` masks in a text; of a login the password, or a token in the place of both, of
    a list or an object over several lines its own texts, what has a secret-looking key there, and
    what has the form of a token."""
    text = without_colors(text)
    parts = list(_parts(without_forms(text)))
    of_lists = [item for _, values in parts if values for item in _items(values)]
    shown = "".join(f"{shown[:-3]}{values}" if values else shown for shown, values in parts)
    return [*_replaced(text, shown), *(item for item in of_lists if "***" not in item)]


def _items(values: str) -> Iterator[str]:
    inner = values[1:] if values[0] in "[{" else values
    named = _replaced(inner, _SECRET.sub(mask, inner))
    yield from (item for item in named if item not in ("[", "{"))
    for found in _ITEM.finditer(values):
        item = _unquoted(found["text"]) if found["text"] else found["single"] or found["bare"]
        if not item or found["key"] is not None:
            continue
        if not (found["of_key"] or found["bare"]) or _TOKEN_FORM.match(item):
            yield item


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def _replaced(text: str, masked: str) -> list[str]:
    """What a masked text has *** for."""
    first, *others = masked.split("***")
    if not others:
        return []
    if not text.startswith(first):
        return [text]
    found: list[str] = []
    rest = text[len(first) :]
    for following in others:
        end = rest.find(following) if following else len(rest)
        if end < 0:
            return [*found, rest]
        name, colon, password = rest[:end].partition(":")
        if following.startswith("@"):  # a login
            if colon or _TOKEN_FORM.search(name):
                found.append(password or name)
        else:
            found.append(rest[:end])
        rest = rest[end + len(following) :]
    return found


def redacted_lines(lines: Sequence[str]) -> list[str]:
    """`redact` for lines that belong together; a secret over several of them leaves fewer."""
    return redact("\n".join(lines)).split("\n") if lines else []


LONGEST_COMMAND = 80  # characters
LONGEST_READ = 1000
_USERINFO = re.compile(r"(://)[^\s/@]+@")
_OPTION = re.compile(
    r"(?P<head>(?<!\S)--?[\w.-]*(?:pass(?:word|wd|phrase|(?![a-z]))|secret|token|auth|credential|key)[\w.-]*\s+)\S+",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(?P<head>\b(?:bearer|basic)\s+)\S+", re.IGNORECASE)
_TOKEN = re.compile(r"\b(?:sk|hf|nvapi|ghp|github_pat|glpat|xox[abp]|AKIA)[-_]?[\w-]{12,}")


def redact_command(line: str) -> str:
    """A process's command line for people: on one line, without secrets, shortened at its end."""
    words = line[:LONGEST_READ].split()
    if len(line) >= LONGEST_READ:  # the host cuts it there, and the last may be part of a secret
        words[-1:] = ["…"]
    line = " ".join(words)
    line = _USERINFO.sub(r"\1***@", line)
    line = _HEADER.sub(r"\g<head>***", _OPTION.sub(r"\g<head>***", line))
    line = _TOKEN.sub("***", redact(line))
    if len(line) > LONGEST_COMMAND:
        return line[: LONGEST_COMMAND - 1].rstrip() + "…"
    return line
