# hold.sh MANAGER NAME...: keep packages at the version they have.
manager=$1; shift
if [ "$manager" = apt ]; then
    apt-mark hold "$@" >/dev/null
    exit
fi
# every call of yum costs seconds: the old locks go in one, the new ones come in another
old='' new=''
for name; do
    version=$(rpm -q --qf '%{VERSION}-%{RELEASE}' "$name") || exit 1
    old="$old *$name-[0-9]*"
    new="$new $name-$version"
done
set -f
# package names and versions have no spaces: splitting is meant
# shellcheck disable=SC2086
yum -q versionlock delete $old >/dev/null 2>&1
# shellcheck disable=SC2086
yum -q versionlock add $new >/dev/null
