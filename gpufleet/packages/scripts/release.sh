# release.sh MANAGER MESSAGE NAME...: release packages. A name that is not held is no error: the package may
# be removed, and then the package manager may not know its name.
manager=$1 message=$2; shift 2
if [ "$manager" = apt ]; then
    held=$(dpkg-query -W -f '${Status} ${binary:Package}\n' "$@" 2>/dev/null |
        awk '$1 == "hold" && $3 != "not-installed" { print $4 }')
    [ -n "$held" ] || exit 0
    # package names have no spaces: splitting is meant
    # shellcheck disable=SC2086
    out=$(apt-mark unhold $held 2>&1) || fail "$message" "$out"
    exit 0
fi
has yum || exit 0
old=''
for name; do old="$old *$name-[0-9]*"; done
set -f
# shellcheck disable=SC2086
out=$(yum -q versionlock delete $old 2>&1) # its exit status is 1 also where there was none to delete
locked() { # the locks of NAMEs that are still there; yum 3 writes epoch:name-version, dnf name-epoch:version
    for list in /etc/yum/pluginconf.d/versionlock.list /etc/dnf/plugins/versionlock.list; do
        [ -e "$list" ] || continue
        while IFS= read -r lock; do
            for name; do
                case $lock in "$name"-[0-9]* | [0-9]*:"$name"-[0-9]*) printf '%s: %s\n' "$list" "$lock" ;; esac
            done
        done <"$list"
    done
}
left=$(locked "$@")
[ -z "$left" ] || fail "$message" "$left" "$out"
exit 0
