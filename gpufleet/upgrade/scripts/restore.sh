# restore.sh FOLDER RUN VERSION LACKING DAMAGED OTHER MESSAGE MANAGER LOCK NAME...: install the packages of VERSION
# from FOLDER, without a repository, and remove those of NAME that are not among them: they belong to the version that
# failed. With OTHER it fails where FOLDER belongs to another run.
folder=$1 run=$2 version=$3 lacking=$4 damaged=$5 other=$6 message=$7 manager=$8 lock=$9; shift 9
[ -d "$folder" ] || fail "$lacking" 'there: nothing'
own "$folder" "$run" "$other"
kept "$folder" "$version" "$lacking" "$damaged"
mark "$folder" restoring "$run"
gone=''
for name; do grep -qFx -- "$name" "$folder/names" || gone="$gone $name"; done
versions() { # of an installed package, a line each: a transaction that was killed leaves two
    rpm -q --qf '%{VERSION}-%{RELEASE}\n' "$1" 2>/dev/null | grep -v 'is not installed'
}
orders() { # for the shell of yum or dnf: removals, downgrades, reinstallations, installations
    for name in $gone; do printf 'remove %s\n' "$name"; done
    for file in "$folder"/packages/*.rpm; do
        named=$(rpm -qp --qf '%{NAME} %{VERSION}-%{RELEASE}' "$file" 2>/dev/null) || return 1
        name=${named% *} wanted=${named#* }
        there=$(versions "$name")
        if printf '%s\n' "$there" | grep -qFx -- "$wanted"; then
            printf 'reinstall %s\n' "$file"
            for each in $(printf '%s\n' "$there" | grep -vFx -- "$wanted"); do printf 'remove %s-%s\n' "$name" "$each"; done
        elif [ -n "$there" ] && [ "$(printf '%s\n' "$there" "$wanted" | sort -V | head -n 1)" = "$wanted" ]; then
            printf 'downgrade %s\n' "$file" # yum 3 installs an older version only by this verb
        else
            printf 'install %s\n' "$file"
        fi
    done
    echo run
}
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
    # One transaction removes and installs: it is checked as a whole before anything is touched, and in it rpm unpacks
    # what is new before it erases what is old. `rpm -e --nodeps` and then `rpm -U` would leave a host without any
    # driver if it were killed in between. The packages come from the folder: no repository is asked.
    asked=$(orders) || fail "$message" 'a package in the folder cannot be read'
    out=$(printf '%s\n' "$asked" | "$manager" -y --disablerepo='*' --disableplugin=versionlock \
        --setopt=clean_requirements_on_remove=False shell 2>&1)
    there=$(rpm -q --qf '%{NAME}=%{VERSION}-%{RELEASE}\n' $(cat "$folder/names") 2>/dev/null)
    wanted=$(rpm -qp --qf '%{NAME}=%{VERSION}-%{RELEASE}\n' "$folder"/packages/*.rpm 2>/dev/null)
    # the shell of yum and dnf exits 0 whatever happens
    for name in $gone; do
        if rpm -q "$name" >/dev/null 2>&1; then fail "$message" "still there: $name" "$(printf '%s\n' "$out" | tail -n 12)"; fi
    done
fi
for word in $wanted; do
    printf '%s\n' "$there" | grep -qFx -- "$word" || fail "$message" "not installed: $word" "$(printf '%s\n' "$out" | tail -n 12)"
done
exit 0
