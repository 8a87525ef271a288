"""What a program says in sentences, without its secrets: values are masked, prose is not."""

from __future__ import annotations

import re

from gpufleet.core.redact import PART, end_of_entries, end_of_lines
from gpufleet.core.secret_forms import INNER, MORE, NAME, QUOTE, without_colors, without_forms

MASK = "***"
# a name that is no value, as one in front of the name that has the value
_BARE = rf"""{QUOTE}?(?:password|passwd|passphrase|secret|token|cookie|authorization|auth
    |credentials?|api[_-]?key){QUOTE}?\s{{0,9}}[=:](?=[\s"'])"""
# a name and its sign; Kubernetes has the kind of an error between them and the value
_HEAD = re.compile(
    rf"""["']?(?P<name>{NAME}){PART}{QUOTE}?\s*(?P<sign>:=|=>|[=:])(?P<gap>\s*)
        (?P<kind>(?!{_BARE})(?-i:[A-Z][a-z]{{1,30}}(?:[ ][a-z]{{1,30}})?):\s+)?(?:b(?=["']))?""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMED = re.compile(_BARE, re.IGNORECASE | re.VERBOSE)  # the value is behind it
_OF_VALUE = re.compile(r"(?:Invalid|Unsupported|Duplicate) value:")  # what follows is always one
_HEADER = re.compile(r"(?:authorization|cookie)\Z", re.IGNORECASE)
# a scheme, then what no prose has
_OF_HEADER = re.compile(
    r"(?:basic|bearer|digest|negotiate|ntlm|hawk|token|api-?key|aws4\S*)\s|[^\s=]{1,300}="
    r"|[^\s:]{1,99}\s{1,9}[^\s=]{1,300}=\S",
    re.IGNORECASE,
)
# an unknown scheme and its credential, where the name is written as that of a header; more words
# behind a comma, in quotes, or with what no prose has
_CREDENTIALS = re.compile(
    r"""[^\s"']+(?:[ \t]+(?:[^\s"']+|"[^"\n]*"?|'[^'\n]*'?))?
        (?:(?<=[,;])[ \t]+\S+|[ \t]+(?:"[^"\n]*"?|'[^'\n]*'?|(?=\S{0,300}[0-9=])\S+))*""",
    re.VERBOSE,
)
_CREDENTIAL = re.compile(r"[^\s:]{1,99}\s{1,9}\S{0,300}[0-9A-Z=:]")
_OWN_HEADER = re.compile(r"X(?:-[A-Z][a-z]+)+\Z")  # X-Vault-Token: a word behind it is the value
_LISTED = re.compile(r"[\[{-]")  # of JSON, YAML and Go
_QUOTED = re.compile(
    rf"""(?:{INNER}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
        |`[^`\n]*`|`[^`'\n]*'|`[^\n]*)(?:{MORE}(?!["'\w]|\\')|["'\w]\S*|\\'[^\n]*)?""",
    re.IGNORECASE | re.VERBOSE,
)
_OPENED = re.compile(rf"{QUOTE}|`", re.IGNORECASE)
# a text in quotes is part of a word where a sign is before it, a quote where a letter is behind it
_WORD = re.compile(
    r"""(?:[^\s"']|(?:(?<=[:=])\s{0,9}|(?<=[({\[,]))(?:"(?:\\.|[^"\\\n])*(?:"|$)|'[^'\n]*(?:'|$))
        |["'](?=[^\s,;:.)}\]"']))+""",
    re.MULTILINE | re.VERBOSE,
)
_LINE = re.compile(r"[^\n]*")
_DIGIT = re.compile(r"(?!x509:\s)\S{0,300}\d")
# one word: at the end of a clause, or before the next name and its value
_ALONE = re.compile(r"[^\s\"']{1,300}(?:\s{0,9}(?:[,;}\]]|\Z|\n)|\s{1,9}[\w.-]{1,300}[:=]\S)")
_UP_TO_QUOTE = re.compile(r"(?:[^\n\"';=:]|(?<=\w)'(?=\w)){1,300}(?<=[\s(])(?=[\"'])")
# what names a rule or an account, no value: Kyverno, the API server
_REASON = re.compile(r"[\"']validation (?:error|failure)\b")
_ACCOUNT = re.compile(r"service ?account [a-z0-9-]{1,63}/\Z", re.IGNORECASE)
_OF_ACCOUNT = re.compile(
    r"(?:serviceaccounts?|secrets?|pods?|the|no|not|failed|cannot|unable)\s"
    r"|(?:Unauthorized|Forbidden|NotFound)\b|(?:Get|Post|Put|Patch) \"https?://"
)


def redact_sentences(text: str) -> str:
    """As `redact`, for what a program says in sentences: `auth: the certificate has expired` is no
    value of a key. What a quote opens and nothing closes is masked to the end of the text."""
    text = without_forms(without_colors(text))
    shown: list[str] = []
    at = 0
    while head := _HEAD.search(text, at):
        begin, end = _values(text, head)
        opened = _OPENED.match(text, begin)
        quote = opened[0] if opened else ""
        shown += [text[at:begin], f"{quote}{MASK}{quote}" if end > begin else ""]
        at = end
    return "".join([*shown, text[at:]])


def _values(text: str, head: re.Match[str]) -> tuple[int, int]:
    """As `_value`, also the next one if it may be a name: `secret: DB_PASSWORD_2: swordfish`."""
    if text.startswith(MASK, head.end()):
        return head.end(), head.end()
    begin, end = _value(text, head)
    last = head.end()
    while end > begin and (further := _HEAD.match(text, last)) and further.end() >= end:
        last, beyond = further.end(), _value(text, further)[1]
        if beyond <= end:
            break
        end = beyond
    return begin, max(begin, begin + len(text[begin:end].rstrip(" \t")))


def _value(text: str, head: re.Match[str]) -> tuple[int, int]:
    """Where a value begins and ends; both are the same where prose follows."""
    begin, before = head.end(), head.start("name")
    entries = end_of_entries(text, head.start(), begin)
    if entries < begin or (entries == begin and _is_prose(text, head)):
        return begin, begin
    if entries > begin:
        return begin, entries
    is_header = _HEADER.search(head["name"])
    if (is_header and _OF_HEADER.match(text, begin)) or _LISTED.match(text, begin):
        return begin, max(end_of_lines(text, begin), _end(_LINE, text, begin))
    if _OPENED.match(text, begin):
        return begin, _quoted(text, begin)
    if is_header and is_header[0] == "Cookie":
        return begin, _end(_LINE, text, begin)
    if is_header and (is_header[0][0].isupper() or _CREDENTIAL.match(text, begin)):
        return begin, _end(_CREDENTIALS, text, begin)
    if head["sign"] != ":" or _names_value(head) or _DIGIT.match(text, begin):
        return begin, _end(_WORD, text, begin)
    if _ALONE.match(text, begin):
        return begin, _end(_WORD, text, begin)
    if not head["gap"] and text[before - 1 : before] != ":":  # else a user of Kubernetes
        return begin, _end(_WORD, text, begin)
    prose = _UP_TO_QUOTE.match(text, begin)
    return (prose.end(), _quoted(text, prose.end())) if prose else (begin, begin)


def _is_prose(text: str, head: re.Match[str]) -> bool:
    before = head.start("name")
    if _ACCOUNT.search(text, max(0, before - 99), before):
        return bool(_OF_ACCOUNT.match(text, head.end()))
    if _REASON.match(text, head.end()):
        return True
    return not _names_value(head) and bool(_NAMED.match(text, head.end()))


def _names_value(head: re.Match[str]) -> bool:
    return bool(_OF_VALUE.match(head["kind"] or "") or _OWN_HEADER.match(head["name"]))


def _quoted(text: str, begin: int) -> int:
    found = _QUOTED.match(text, begin)
    return found.end() if found else len(text)


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    found = pattern.match(text, begin)
    return found.end() if found else begin
