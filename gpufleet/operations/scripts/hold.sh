# hold.sh MANAGER MESSAGE NAME...: keep packages at the version they have.
manager=$1 message=$2; shift 2
if [ "$manager" = apt ]; then
    out=$(apt-mark hold "$@" 2>&1) || fail "$message" "$out"
    exit 0
fi
# every call of yum costs seconds: the old locks go in one, the new ones come in another
old='' new=''
for name; do
    version=$(rpm -q --qf '%{VERSION}-%{RELEASE}' "$name") || fail "$message" "$version"
    old="$old *$name-[0-9]*"
    new="$new $name-$version"
done
set -f
# package names and versions have no spaces: splitting is meant
# shellcheck disable=SC2086
yum -q versionlock delete $old >/dev/null 2>&1
# shellcheck disable=SC2086
out=$(yum -q versionlock add $new 2>&1) || fail "$message" "$out"
exit 0
