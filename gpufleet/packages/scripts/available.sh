# available.sh MANAGER NAME...: `name version` for every version in the repositories.
manager=$1; shift
[ $# -gt 0 ] || exit 0
if [ "$manager" = apt ]; then
    apt-cache madison "$@" 2>/dev/null | awk -F'|' '{ gsub(/ /, ""); print $1, $2 }' | sort -u
    exit 0
fi
# yum 3 wraps long lines: the words come in threes, name.arch version repository
# and its version lock hides all other versions
yum -q --disableplugin=versionlock list available installed --showduplicates "$@" 2>/dev/null | tr -s ' \n' '\n\n' |
    awk '/^(Available|Installed)$/ { skip = 1; next } skip { skip = 0; next }
         { word[n++ % 3] = $0; if (n % 3 == 0) { sub(/\.[^.]*$/, "", word[0]); print word[0], word[1] } }' | sort -u
exit 0
