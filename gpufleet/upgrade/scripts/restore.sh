# restore.sh FOLDER VERSION UNUSABLE MESSAGE MANAGER LOCK NAME...: install the packages of VERSION from FOLDER,
# without a repository, and remove those of NAME that are not among them: they belong to the version that failed.
folder=$1 message=$4 manager=$5 lock=$6
kept "$folder" "$2" "$3"; shift 6
note_once "$folder" restoring
gone=''
for name; do grep -qFx -- "$name" "$folder/names" || gone="$gone $name"; done
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
if [ "$manager" = apt ]; then
    marked=$(for name in $gone; do printf '%s- ' "$name"; done)
    out=$(apt-get -y -q --no-download --fix-broken --no-install-recommends --allow-downgrades \
        --allow-change-held-packages -o DPkg::Lock::Timeout="$lock" -o Dpkg::Options::=--force-confdef \
        -o Dpkg::Options::=--force-confold install "$folder"/packages/*.deb $marked 2>&1) ||
        fail "$message" "$out"
    there=$(dpkg-query -W -f '${Package}=${Version}\n' $(cat "$folder/names") 2>/dev/null)
    wanted=$(for file in "$folder"/packages/*.deb; do dpkg-deb -W --showformat='${Package}=${Version}\n' "$file"; done)
else
    # The earlier packages are one transaction of rpm, in which it unpacks what is new before it erases what is old; what
    # only the failed version has is erased after it. A kill at any moment leaves a driver, and the next attempt ends
    # the work: erasing first would leave none. Until then the two may own one file, or need versions of each other:
    # only where something is to be erased are these checks left out. yum and dnf are not asked: dnf's shell takes local
    # packages in its first line only, yum's downgrades them by another verb, and both want their repositories.
    loosely=''
    if [ -n "$gone" ]; then loosely='--nodeps --replacefiles'; fi
    out=$(rpm -U --oldpackage --replacepkgs $loosely "$folder"/packages/*.rpm 2>&1) ||
        fail "$message" "$out"
    gone=$(for name in $gone; do if rpm -q "$name" >/dev/null 2>&1; then printf '%s ' "$name"; fi; done)
    if [ -n "$gone" ]; then out=$(rpm -e --nodeps $gone 2>&1) || fail "$message" "$out"; fi
    there=$(rpm -q --qf '%{NAME}=%{VERSION}-%{RELEASE}\n' $(cat "$folder/names") 2>/dev/null)
    wanted=$(rpm -qp --qf '%{NAME}=%{VERSION}-%{RELEASE}\n' "$folder"/packages/*.rpm 2>/dev/null)
fi
for word in $wanted; do
    printf '%s\n' "$there" | grep -qFx -- "$word" || fail "$message" "$out" "not installed: $word"
done
exit 0
