# release.sh MANAGER MESSAGE NAME...: release packages. A name that is not held is no error: the package may
# be removed, and then the package manager may not know its name.
manager=$1 message=$2; shift 2
if [ "$manager" = apt ]; then
    # a name stands for every architecture there, and gpufleet holds the host's own
    held=$(dpkg-query -W -f '${Status} ${binary:Package}\n' "$@" 2>/dev/null |
        awk -v own=":$(dpkg --print-architecture)" -v names=" $* " '
            $1 != "hold" || $3 == "not-installed" { next }
            !/:/ || substr($4, index($4, ":")) == own || index(names, " " $4 " ") { print $4 }')
    [ -n "$held" ] || exit 0
    # package names have no spaces: splitting is meant
    # shellcheck disable=SC2086
    out=$(apt-mark unhold $held 2>&1) || fail "$message" "$out"
    exit 0
fi
has yum || exit 0
old=$(version_locks "$@")
[ -n "$old" ] || exit 0
set -f
# shellcheck disable=SC2086
out=$(yum -q versionlock delete $old 2>&1)
left=$(version_locks "$@")
[ -z "$left" ] || fail "$message" "$out" "$left"
exit 0
