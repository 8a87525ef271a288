# Keys that rpm trusts. Parsed by packages.py.
[ "$format" = rpm ] &&
    rpm -q gpg-pubkey --nodigest --nosignature --qf '@key gpg-pubkey-%{VERSION}-%{RELEASE}\n%{DESCRIPTION}\n' |
    grep -v '^package '
