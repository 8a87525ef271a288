# restore.sh FOLDER VERSION LACKING DAMAGED MESSAGE MANAGER LOCK NAME...: install the packages of VERSION from FOLDER,
# without a repository, and remove those of NAME that are not among them: they belong to the version that failed.
folder=$1 version=$2 lacking=$3 damaged=$4 message=$5 manager=$6 lock=$7; shift 7
kept "$folder" "$version" "$lacking" "$damaged"
printf 'restoring\n' >"$folder/state" || exit 1
gone=''
for name; do grep -qFx -- "$name" "$folder/names" || gone="$gone $name"; done
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
if [ "$manager" = apt ]; then
    marked=$(for name in $gone; do printf '%s- ' "$name"; done)
    out=$(apt-get -y -q --no-download --fix-broken --no-install-recommends --allow-downgrades \
        --allow-change-held-packages -o DPkg::Lock::Timeout="$lock" -o Dpkg::Options::=--force-confdef \
        -o Dpkg::Options::=--force-confold install "$folder"/packages/*.deb $marked 2>&1) ||
        fail "$message" "$(printf '%s\n' "$out" | tail -n 12)"
    there=$(dpkg-query -W -f '${Package}=${Version}\n' $(cat "$folder/names") 2>/dev/null)
    wanted=$(for file in "$folder"/packages/*.deb; do dpkg-deb -W --showformat='${Package}=${Version}\n' "$file"; done)
else
    if [ -n "$gone" ]; then out=$(rpm -e --nodeps $gone 2>&1) || fail "$message" "$out"; fi
    out=$(rpm -U --oldpackage --replacepkgs "$folder"/packages/*.rpm 2>&1) ||
        fail "$message" "$(printf '%s\n' "$out" | tail -n 12)"
    there=$(rpm -q --qf '%{NAME}=%{VERSION}-%{RELEASE}\n' $(cat "$folder/names") 2>/dev/null)
    wanted=$(rpm -qp --qf '%{NAME}=%{VERSION}-%{RELEASE}\n' "$folder"/packages/*.rpm 2>/dev/null)
fi
for word in $wanted; do
    printf '%s\n' "$there" | grep -qFx -- "$word" || fail "$message" "not installed: $word"
done
exit 0
