# hold.sh MANAGER MESSAGE NAME...: hold packages at their installed version.
manager=$1 message=$2; shift 2
if [ "$manager" = apt ]; then
    out=$(apt-mark hold "$@" 2>&1) || fail "$message" "$out"
    exit 0
fi
# every call of yum takes seconds: one removes the old locks, if any; another adds the new ones
new=''
for name; do
    version=$(rpm -q --qf '%{VERSION}-%{RELEASE}' "$name") || fail "$message" "$version"
    new="$new $name-$version"
done
old=$(version_locks "$@")
set -f
# package names and versions have no spaces: splitting is meant
# shellcheck disable=SC2086
if [ -n "$old" ]; then yum -q versionlock delete $old >/dev/null 2>&1; fi
# shellcheck disable=SC2086
out=$(yum -q versionlock add $new 2>&1) || fail "$message" "$out"
exit 0
