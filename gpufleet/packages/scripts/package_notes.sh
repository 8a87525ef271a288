# Shared by the scripts that install packages, or list those of gpufleet. LIST has one name per line: the packages
# that transactions of gpufleet installed, and those of an unfinished transaction.
# packages_there: the packages of this host, including half-installed ones; each rpm key has a name of its own
packages_there() {
    if has dpkg-query; then
        dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^.[^nc]. //p'
    else
        rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' | sed 's/^gpg-pubkey /gpg-pubkey-/; s/ .*//'
    fi | sort -u | grep . # a host has some: none is a failure
}
# expect MESSAGE LIST NAME...: a transaction will install NAMEs; those that are already installed are not its own
expect() {
    message=$1 list=$2; shift 2
    [ $# -gt 0 ] || return 0
    out=$({ printf '%s\n' "$@" | sort -u >"$list.wanted" && packages_there >"$list.there" &&
        comm -23 "$list.wanted" "$list.there" >>"$list"; } 2>&1) || fail "$message" "$list cannot be written" "$out"
    rm -f "$list.wanted" "$list.there"
}
# settle LIST: the transaction finished or failed: packages that it did not install are not ours if installed later
settle() {
    if sort -u "$1" >"$1.wanted" && packages_there >"$1.there" && comm -12 "$1.wanted" "$1.there" >"$1.new"; then
        mv "$1.new" "$1"
    fi
    rm -f "$1.wanted" "$1.there" "$1.new"
}
# imported LIST OUTPUT: the keys that yum or dnf imported, by its output
imported() {
    [ -n "$1" ] || return 0
    for key in $(printf '%s\n' "$2" | tr A-F a-f |
        sed -n 's/.*Importing [A-Za-z]* key 0x[0-9a-f]*\([0-9a-f]\{8\}\)\([^0-9a-f].*\)*$/\1/p'); do
        packages_there | grep -- "^gpg-pubkey-.*$key-" >>"$1"
    done
}
