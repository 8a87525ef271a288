# rpm_transaction.sh LIST NAMES MANAGER HOW MESSAGE WORD...: one transaction of yum or dnf.
# It installs NAMES, which are noted in LIST, as are keys; "" notes nothing.
# HOW: `try` simulates it, `fetch` downloads the packages, `run` runs it.
# WORD: -NAME removes, NAME=VERSION installs that version, NAME any version.
list=$1 names=$2 manager=$3 how=$4 message=$5; shift 5
gone='' older='' wanted='' expected=''
for word; do
    case $word in
        # what yum's shell would split
        *[!A-Za-z0-9.:_+~^=-]*) fail "not the name of a package: $word" ;;
        -*) gone="$gone ${word#-}" ;;
        *=*)
            # yum 3 does not accept name-epoch:version-release without an architecture
            name=${word%%=*} version=${word#*=}
            version=${version#*:}
            expected="$expected $name-$version"
            there=$(rpm -q --qf '%{VERSION}-%{RELEASE}\n' "$name") && there=${there##*
} || there=$version
            lowest=$(printf '%s\n%s\n' "$there" "$version" | sort -V | head -n 1)
            # yum 3 installs an older version only by this verb
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
    # the locks are those of the old versions
    try) shell --assumeno --disableplugin=versionlock; exit 0 ;;
    fetch)
        out=$(shell -y --downloadonly --disableplugin=versionlock)
        imported "$list" "$out"
        # a separate plugin in older versions of yum: without it the transaction downloads the packages
        case $out in *'no such option: --downloadonly'*) exit 0 ;; esac
        ! printf '%s\n' "$out" | grep -q '^Error' || fail "$message" "$(printf '%s\n' "$out" | grep -A 5 '^Error')"
        exit 0
        ;;
esac
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
[ -z "$list" ] || expect "$message" "$list" $names
spare_containers
out=$(shell -y)
imported "$list" "$out"
[ -z "$list" ] || settle "$list"
wrong=''
for package in $expected; do rpm -q "$package" >/dev/null 2>&1 || wrong="$wrong not installed: $package;"; done
for name in $gone; do ! rpm -q "$name" >/dev/null 2>&1 || wrong="$wrong still there: $name;"; done
[ -z "$wrong" ] || fail "$message" "$out" "$wrong"
printf '%s\n' "$out"
