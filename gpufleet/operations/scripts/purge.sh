# purge.sh MANAGER NAME...: remove exactly these packages. The low-level tools refuse what another
# package still needs; such packages stay, and are printed as `kept NAME`.
manager=$1; shift
there() {
    if [ "$manager" = apt ]; then
        dpkg-query -W -f '${db:Status-Abbrev}\n' "$1" 2>/dev/null | grep -q '^.[^n ]'
    else
        rpm -q "$1" >/dev/null 2>&1
    fi
}
drop() {
    if [ "$manager" = apt ]; then
        apt-mark unhold "$@" >/dev/null 2>&1
        dpkg --purge "$@" >/dev/null 2>&1
    else
        rpm -e "$@" >/dev/null 2>&1
    fi
}
wanted=''
for name; do if there "$name"; then wanted="$wanted $name"; fi; done
[ -n "$wanted" ] || exit 0
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
drop $wanted && exit 0
progress=yes
while [ -n "$progress" ]; do
    progress='' left=''
    for name in $wanted; do
        there "$name" || continue
        if drop "$name"; then progress=yes; else left="$left $name"; fi
    done
    wanted=$left
    [ -n "$wanted" ] || exit 0
done
for name in $wanted; do echo "kept $name"; done
exit 0
