# available.sh MANAGER EXCLUDED NAME...: `name version` for every version in the repositories; `error TEXT` if the
# package manager cannot read them. EXCLUDED: yes, also what yum and dnf are configured to exclude.
manager=$1 excluded=$2; shift 2
[ $# -gt 0 ] || exit 0
if [ "$manager" = apt ]; then
    problem=$(unreadable)
    if [ -n "$problem" ]; then printf 'error %s\n' "$(printf '%s\n' "$problem" | head -n 3 | tr '\n' ' ')"; exit 0; fi
    apt-cache madison "$@" 2>/dev/null | awk -F'|' '{ gsub(/ /, ""); print $1, $2 }' | sort -u
    exit 0
fi
errors=$(mktemp) || exit 1
trap 'rm -f "$errors"' EXIT
[ "$excluded" != yes ] || set -- --disableexcludes=all "$@"
# yum's version lock hides all other versions
out=$(yum -q --disableplugin=versionlock list available installed --showduplicates "$@" 2>"$errors")
if [ $? -ne 0 ] && ! grep -q 'No matching Packages' "$errors"; then
    printf 'error %s\n' "$(tail -n 3 "$errors" | tr '\n' ' ')"
    exit 0
fi
# yum 3 wraps long lines: the words come in threes, name.arch version repository. Plugins print before the headings, as
# NVIDIA's for precompiled modules does: https://github.com/NVIDIA/yum-packaging-precompiled-kmod/issues/28 (read 2026-11-28)
printf '%s\n' "$out" | tr -s ' \n' '\n\n' |
    awk '/^(Available|Installed)$/ { skip = seen = 1; n = 0; next } skip { skip = 0; next }
         seen { word[n++ % 3] = $0; if (n % 3 == 0) { sub(/\.[^.]*$/, "", word[0]); print word[0], word[1] } }' | sort -u
exit 0
