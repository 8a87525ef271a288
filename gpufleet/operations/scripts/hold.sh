# hold.sh MANAGER NAME...: keep packages at the version they have.
manager=$1; shift
if [ "$manager" = apt ]; then
    apt-mark hold "$@" >/dev/null
    exit
fi
for name; do
    version=$(rpm -q --qf '%{VERSION}-%{RELEASE}' "$name") || exit 1
    yum -q versionlock delete "*$name-[0-9]*" >/dev/null 2>&1
    yum -q versionlock delete "$name" >/dev/null 2>&1
    yum -q versionlock add "$name-$version" >/dev/null || exit 1
done
exit 0
