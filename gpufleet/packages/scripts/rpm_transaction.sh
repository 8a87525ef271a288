# rpm_transaction.sh LIST NAMES MANAGER HOW MESSAGE WORD...: one transaction of yum or dnf, whatever has to move.
# It is to bring NAMES, which LIST gets to know, as it does of keys; "" notes nothing.
# HOW: `try` prints what would be done, `fetch` downloads the packages, `run` carries it out.
# WORD: -NAME goes, NAME=VERSION comes to that version, NAME at any version.
list=$1 names=$2 manager=$3 how=$4 message=$5; shift 5
gone='' older='' wanted='' expected=''
for word; do
    case $word in
        # what the shell of yum would take for more than one word
        *[!A-Za-z0-9.:_+~^=-]*) fail "not the name of a package: $word" ;;
        -*) gone="$gone ${word#-}" ;;
        *=*)
            # yum 3 knows no name-epoch:version-release without an architecture
            name=${word%%=*} version=${word#*=}
            version=${version#*:}
            expected="$expected $name-$version"
            there=$(rpm -q --qf '%{VERSION}-%{RELEASE}\n' "$name") && there=${there##*
} || there=$version
            lowest=$(printf '%s\n%s\n' "$there" "$version" | sort -V | head -n 1)
            # yum 3 goes back to an older version only by this verb
            if [ "$there" != "$version" ] && [ "$lowest" = "$version" ]; then
                older="$older $name-$version"
            else
                wanted="$wanted $name-$version"
            fi
            ;;
        *) wanted="$wanted $word" ;;
    esac
done
shell() { # OPTION...: the words above, given to the manager's own shell, which exits 0 whatever happens
    {
        [ -z "$gone" ] || printf 'remove%s\n' "$gone"
        [ -z "$older" ] || printf 'downgrade%s\n' "$older"
        [ -z "$wanted" ] || printf 'install%s\n' "$wanted"
        echo run
    } | "$manager" --setopt=clean_requirements_on_remove=False "$@" shell 2>&1
}
case $how in
    # the locks are those of the versions that go
    try) shell --assumeno --disableplugin=versionlock; exit 0 ;;
    fetch)
        out=$(shell -y --downloadonly --disableplugin=versionlock)
        imported "$list" "$out"
        # a plugin on its own in older versions of yum: then the packages come with the transaction
        case $out in *'no such option: --downloadonly'*) exit 0 ;; esac
        ! printf '%s\n' "$out" | grep -q '^Error' || fail "$message" "$(printf '%s\n' "$out" | grep -A 5 '^Error')"
        exit 0
        ;;
esac
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
[ -z "$list" ] || expect "$list" $names
out=$(shell -y)
imported "$list" "$out"
[ -z "$list" ] || settle "$list"
wrong=''
for package in $expected; do rpm -q "$package" >/dev/null 2>&1 || wrong="$wrong not installed: $package;"; done
for name in $gone; do ! rpm -q "$name" >/dev/null 2>&1 || wrong="$wrong still there: $name;"; done
[ -z "$wrong" ] || fail "$message" "$wrong" "$(printf '%s\n' "$out" | tail -n 20)"
printf '%s\n' "$out"
