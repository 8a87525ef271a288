"""Secrets that are known by their form: logins, options of commands, tokens and keys."""

from __future__ import annotations

import re

# colors of a terminal, which part a name from its value, as grep and tput write them; other
# sequences are for people to see
_COLOR = re.compile(r"(?:\x1b\(B)?\x1b\[[0-9;:]{0,99}m(?:\x1b\[K)?")
# where a word begins; the letter of an escaped line break, as Go and Python write it, is no part
_BEGINS = r"(?:(?<!\w)|(?<=\\[nrt]))"
_BREAK = r"(?:[ \t]{0,9}\\\r?\n\s{0,99})"  # a command that goes on in the next line
_WORD = re.compile(r"(?:[^\s\"']|(?<=\w)'(?=\w))+")
_SLASHES = r"(?:\\{0,9}/){2}"  # JSON may escape a slash, and JSON in JSON
_PERCENT = r"%(?:25){0,4}"  # as URLs have it, and URLs within URLs
QUOTE = rf"""(?:\\{{0,9}}["']|&(?:quot|apos|\#(?:34|39|x22|x27));|{_PERCENT}2[27])"""
# text in quotes of another text: JSON in JSON, in HTML or in a URL; a quote of its own is escaped
INNER = rf"""(?P<quote>\\{{1,9}}["']|&(?:quot|apos|\#(?:34|39|x22|x27));|{_PERCENT}2[27])
    (?:(?!(?<!\\)(?<!5C)(?P=quote))[^\n])*(?P=quote)"""
# where a word follows the second quote, the value goes on: as shells have it, or it is no quote
_ARGUMENT = rf"""(?:{INNER}|(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|'[^'\n]*')
    (?:(?:["'\w]|\\')[^\n]*)?)"""
# more texts behind one in quotes, where the next is no key
MORE = r"""(?:[ ]{0,9}[,+][ ]{0,9}(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    (?![ ]{0,9}[:=]|\w))*"""
# last word of an option with digits in its name: else it may be a value that begins with dashes
_END_OF_OPTION = r"(?:key|token|secret|password)"
# from one to the next of a list in quotes, where that is no option itself
_NEXT = rf"""{QUOTE}\s*(?:,\s*)?b?(?={QUOTE}
    (?!--(?-i:[a-z][a-z-]*)(?:=|{QUOTE})|--(?-i:[a-z])[\w.-]*(?:=|{_END_OF_OPTION}{QUOTE})))"""
_OPENS = re.compile(QUOTE, re.VERBOSE | re.IGNORECASE)
# what stands before @ in an address; a password may hold a / or an @ itself, a port does not
_LOGIN = re.compile(
    rf"(?P<head>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*:{_SLASHES})"
    r"(?:[^\s/@:\"'?#]+:(?!\d+(?:[/?#\s\"']|$))[^\s\"]*@|[^\s/\"'?#]*@)",
    re.IGNORECASE,
)
_LOGIN_IN_URL = re.compile(
    rf"""(?P<head>{_PERCENT}3A(?:{_PERCENT}2F){{2}})
        (?:(?!{_PERCENT}2F)[^\s"'&])*(?P<tail>{_PERCENT}40)""",
    re.IGNORECASE | re.VERBOSE,
)
# a name is looked at from its beginning alone: a long one must not cost the square of its length
NAME = r"""(?<![\w.-])(?=[\w.-]*(?:pass(?:word|wd|phrase|(?![a-z]))|secret|token|credential
    |auth(?!or(?!ization)|enticat)|(?:api|access|private|routing|service|integration|signing|encryption
    |account|master|shared|ngc|subscription)[_-]?key|jfrog-art-api|amz-signature
    |client-key-data|dockerconfigjson|dockercfg|pwd(?![a-z])|psk(?![a-z])|cookie|webhook[_-]?ur[il]|slack_api_url))[\w.-]+"""
_SECRET_IN_URL = re.compile(
    rf"""(?P<head>(?:{NAME}|{_PERCENT}(?:3F|26)(?:(?:api[_-]?)?key|sig))(?:{_PERCENT}2[27])?
        %(?P<level>(?:25){{0,4}})3[AD](?:{_PERCENT}20|\+){{0,9}})
        (?P<value>{INNER}|(?:(?!%(?P=level)26)[^\s"'&])+)""",
    re.IGNORECASE | re.VERBOSE,
)
# a value of several lines, as YAML has them: all that is indented deeper
_BLOCK = re.compile(
    r"""^(?P<head>(?P<indent>[-+ ]?[ \t]*)(?:-[ \t]+)?["']?
        [\w.-]{0,99}(?:pass(?:word|wd|phrase|(?![a-z]))|secret|token|auth|credential|key|pwd)
        [\w.-]{0,99}["']?[ \t]*:[ \t]*(?:[!&]\S{1,99}[ \t]+){0,2}[|>][-+0-9]{0,2}[ \t]*
        (?:\#[^\n]*)?\r?\n)
        (?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z)|[ \t]*\r?\n)+""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
# what a Secret of Kubernetes holds, in YAML and in JSON
_OF_SECRET = re.compile(rf"kind{QUOTE}?\s{{0,9}}:\s{{0,9}}{QUOTE}?Secret\b", re.VERBOSE)
_SECRET_DATA = re.compile(
    rf"""^(?P<head>(?P<indent>[-+ ]?[ \t]*)(?:string)?[dD]ata:[ \t]*\r?\n)
        (?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z)|[ \t]*\r?\n)+
        |(?P<object>{QUOTE}(?:string)?[dD]ata{QUOTE}\s{{0,9}}:\s{{0,9}}\{{)[^{{}}]*(?=\}})""",
    re.VERBOSE | re.MULTILINE,
)
# an environment variable of a container: in Go, JSON and YAML
_VARIABLE = re.compile(
    rf"""(?P<head>{_BEGINS}name{QUOTE}?\s*[=:]\s*{QUOTE}?{NAME}{QUOTE}?
        (?:(?P<line>[ \t]{{0,9}}(?:\#[^\n]*)?\r?\n[-+]?\s{{0,99}})|\s{{0,99}},\s{{0,99}}|\s{{1,9}}
        |(?:\\r)?\\n\s{{0,99}})
        {QUOTE}?value{QUOTE}?\s*[=:]\s*)
        (?P<value>{INNER}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'(?!\w)|["'][^\n]+
        |(?(line)[^\n]+|(?:(?!,?\s{{0,9}}ValueFrom:|,\s{{0,9}}["'])[^\n}}])+))""",
    re.IGNORECASE | re.VERBOSE,
)
# tokens of a netrc file, and names of variables with their value after a space
_PAIR = re.compile(
    rf"""(?P<head>{_BEGINS}login\s{{1,9}}\S{{1,300}}\s{{1,9}}pass(?:word|wd)\s{{1,9}}
        |{_BEGINS}(?:sshpass|(?:docker|podman|nerdctl|registry|buildah|oras|skopeo|crane)
        \W{{1,9}}(?:-{{1,2}}\w[\w-]{{0,39}}(?:=|\s{{1,9}})(?:[^\s"'|;-]\S{{0,300}}\s{{1,9}})?){{0,9}}login
        |(?:mysql|mariadb)\w{{0,9}})\b(?:(?!:\s|\b(?:docker|podman|nerdctl)\W{{1,9}}run\b)
        (?:[^\n|;]|(?<=\\)\n)){{0,300}}?[\s"']-p(?:{_NEXT}|{_BREAK}|\s?)
        |(?<!\w)(?:[a-z0-9]{{1,40}}_){{1,6}}(?:key|token|secret|password)\s{{1,9}}(?=\S{{0,300}}\d)(?=\S{{12}}))
        (?P<value>{_ARGUMENT}|["']?[^\s"']+)""",
    re.IGNORECASE | re.VERBOSE,
)
# a credential has a digit, a = or a capital within: "Basic authentication" is none
_SCHEME = re.compile(
    rf"{_BEGINS}(?P<head>(?i:Basic|Bearer)(?:\s+|{_PERCENT}20|\+))"
    r"(?=\S{0,300}[0-9=]|\S{1,300}[A-Z])[A-Za-z0-9+/=._~-]{8,}"
)
# the name ends with the word: --password-stdin and --token-file take no secret
_OPTION_VALUE = re.compile(
    rf"""(?P<head>(?:(?<![\w-])|(?<=\\[nrt]))--?(?:[\w.]+-){{0,4}}(?:password|passwd|passphrase|pass|secret|token|credentials?
        |creds|auth|(?:api|access|secret|private|routing|integration|auth|certificate|activation)-?key
        |\w{{1,40}}_(?:key|token|secret|password))
        (?:{_NEXT}|["']?[ \t]*\r?\n[ \t]*-[ \t]+|["']\s+(?=\S{{0,300}}\d)(?=\S{{8}})
        |{_BREAK}|\s+|=))
        (?P<value>{_ARGUMENT}|["'][^\n]*|(?!--?(?:(?-i:[a-z][a-z-]*)|[a-z])(?:[=\s]|\Z)
        |--(?-i:[a-z])[\w.-]*(?:=|{_END_OF_OPTION}(?:\s|\Z)))[^\s"']\S*)""",
    re.IGNORECASE | re.VERBOSE,
)
_CURL_USER = re.compile(
    rf"""(?P<head>{_BEGINS}(?:curl|ctr)\b(?:[^\n|;]|(?<=\\)\n|&[\#\w]{{2,5}};){{0,300}}?(?<=[\s"';])
        (?:-[a-zA-Z]{{0,20}}[uU]|--(?:proxy-)?user)(?:{_NEXT}|{_BREAK}|[\s=]{{0,99}}))
        (?P<value>"[^":\n]*:[^"\n]*"|'[^':\n]*:[^'\n]*'|{INNER}|["']?[^\s:"']{{1,100}}["']?:\S*)""",
    re.VERBOSE,
)
# a login of a proxy without a scheme
_PROXY = re.compile(
    r"""(?P<head>(?:proxy["']?\s{0,9}[=:\s]\s{0,9}|(?<=\s)-x\s{0,9})["']?)[^\s/:@"']{1,300}:[^\s@"']{1,300}@""",
    re.IGNORECASE,
)
# apt.conf has no sign between a name and its value; people write names in two words
_TWO_WORDS = re.compile(
    r"""(?P<head>::(?:password|passwd|token)\s{1,9}"|\b(?:api|access|secret|private)\skey["']?\s{0,9}[:=]\s{0,9}["']?
        (?=[^\s"']{0,300}\d)(?=[^\s"']{8})
        |\bcertificate\skey:\s{1,9}(?=[0-9a-f]{64}\b))[^\n"'\s]{1,999}""",
    re.IGNORECASE | re.VERBOSE,
)
# a path segment with a digit after "hooks", "webhook" or "integration"
_WEBHOOK = re.compile(
    r"""(?P<head>https?://(?:hooks\.[\w.-]{1,255}(?::\d+)?/|(?:[\w-]{1,63}\.)?webhook\.(?![\w.-]{0,255}\.svc\b)[\w.-]{1,255}(?::\d+)?/
        |[\w.-]{1,255}(?::\d+)?/(?:[\w.~-]{1,99}/){0,4}(?:(?:web)?hooks?|integrations?)/|[\w.-]{1,255}/bot(?=\d+:)))
        (?=[^\s"'?#]{0,300}\d)[^\s"']+""",
    re.IGNORECASE | re.VERBOSE,
)
_QUERY = re.compile(
    r"(?P<head>(?:[?&]|&amp;|\\u0026)"
    r"(?:[\w.-]{0,60}(?:token|secret|password|signature)|(?:api[_-]?)?key|sig)=)"
    r"[^\s&\"'#]+",
    re.IGNORECASE,
)
_KNOWN_FORM = re.compile(
    rf"""(?:(?<![\w-])eyJ[\w-]{{10,}}|(?:(?<=-)|(?<=\\[nrt]))eyJ[\w-]{{10,300}})(?:\.[\w-]*){{2,4}}
    |{_BEGINS}(?:(?:sk|hf|nvapi|gh[oprsu]|github_pat|gl(?:pat|rt|sa)|glsa|xox[abprs]|dckr_pat)[-_](?=[\w-]{{0,99}}\d)[\w-]{{16,}}
    |A[KS]IA[0-9A-Z]{{16}}\b|npm_[A-Za-z0-9]{{36}}\b|pypi-AgE[\w-]{{16,}}|hvs\.[\w-]{{20,}}|AIza[\w-]{{35}}
    |ya29\.[\w-]{{20,}}|SG\.[\w-]{{16,40}}\.[\w-]{{20,}}|tskey-[a-z]{{1,20}}-[\w-]{{16,}}
    # the base64 of a private key: its first line says of which kind
    |LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0Eg|BFQyB|BPUEVOU1NI|BFTkNS|BEU0Eg)[\w+/=]*)""",
    re.VERBOSE,
)
# of kubeadm: an ID and a secret
_BOOTSTRAP = re.compile(r"\b[a-z0-9]{6}\.(?=[a-z]{0,15}[0-9])[a-z0-9]{16}(?![\w.-])")
_PRIVATE_KEY = re.compile(
    r"(?P<head>-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----).*?(?P<tail>-----END|\Z)", re.DOTALL
)


def without_forms(text: str) -> str:
    """Without what is known by its form: logins, options, tokens and keys."""
    text = _PRIVATE_KEY.sub(r"\g<head>***\g<tail>", text)
    if _OF_SECRET.search(text):
        text = _SECRET_DATA.sub(_without_data, text)
    text = _BLOCK.sub(r"\g<head>\g<indent>  ***\n", text)
    if "@" in text:
        text = _WORD.sub(_without_login, text)
        text = _PROXY.sub(r"\g<head>***@", text)
    for form in (_SCHEME, _WEBHOOK, _QUERY, _TWO_WORDS):
        text = form.sub(r"\g<head>***", text)
    for form in (_CURL_USER, _CURL_USER, _OPTION_VALUE, _PAIR, _VARIABLE):  # curl has two logins
        text = form.sub(mask, text)
    text = _KNOWN_FORM.sub("***", text)
    text = _BOOTSTRAP.sub("***", text)
    if "%" in text:
        text = _LOGIN_IN_URL.sub(r"\g<head>***\g<tail>", text)
        text = _SECRET_IN_URL.sub(mask, text)
    return text


def without_colors(text: str) -> str:
    """Without the sequences that color a terminal."""
    return _COLOR.sub("", text) if "\x1b" in text else text


def _without_login(found: re.Match[str]) -> str:
    """A word is looked at up to its last @: what is behind would be read again for each address."""
    word = found[0]
    if ":" not in word or "/" not in word or "@" not in word:
        return word
    end = word.rindex("@") + 1
    return _LOGIN.sub(r"\g<head>***@", word[:end]) + word[end:]


def _without_data(found: re.Match[str]) -> str:
    return (
        f"{found['object']}***" if found["object"] else f"{found['head']}{found['indent']}  ***\n"
    )


def mask(found: re.Match[str]) -> str:
    """The value without what it says; quotes around it stay."""
    quote = _OPENS.match(found["value"])
    return f"{found['head']}{quote[0]}***{quote[0]}" if quote else f"{found['head']}***"
