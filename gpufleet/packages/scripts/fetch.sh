# fetch.sh URL LOGIN BYTES SECONDS: the bytes at URL as base64, `empty`, `error TEXT`, `large` if there are more
# than BYTES, `slow` if they take more than SECONDS, or `full TEXT` if the host cannot store them. Always exits 0:
# the reader decides. LOGIN is a netrc file, which is removed; "" for none. It is sent only to the scheme, host and
# port of URL: curl and wget match a login by the host's name, so they must not follow redirects.
url=$1 login=${2:-} most=$3 seconds=$4 folder='' next=''
trap 'rm -rf "$folder"; rm -f "$login"' EXIT
folder=$(mktemp -d 2>&1) || { printf 'full %s\n' "$folder"; folder=''; exit 0; } # a predictable name could be a link
file=$folder/answer errors=$folder/errors known=$login
ends=$(($(date +%s) + seconds))
take() { # COMMAND...: within what is left of the time, and no file above the limit
    left=$((ends - $(date +%s)))
    [ $left -gt 0 ] || return 124
    bounded "$most" "$left" "$@"
}
origin() { # URL: its scheme, host and port
    printf '%s\n' "$1" | sed 's|^\([^:]*://[^/?#]*\).*|\1|' | tr A-Z a-z | sed 's|^\(https://.*\):443$|\1|; s|^\(http://.*\):80$|\1|'
}
absolute() { # PLACE: where a redirect from $url leads
    case $1 in
        //*) printf '%s:%s\n' "${url%%:*}" "$1" ;;
        /*) printf '%s%s\n' "$(printf '%s\n' "$url" | sed 's|^\([^:]*://[^/?#]*\).*|\1|')" "$1" ;;
        '' | *://*) printf '%s\n' "$1" ;;
        *) printf '%s/%s\n' "${url%/*}" "$1" ;;
    esac
}
ask() { # one answer, or all of them up to the last where no login is at stake; `next`: where a redirect leads
    next=''
    if has curl; then
        set -- curl -fsS --connect-timeout 20 --retry 2 -o "$file"
        if [ -z "$known" ]; then take "$@" -L "$url" 2>"$errors"; return; fi
        next=$(take "$@" --netrc-file "$known" -w '%{redirect_url}' "$url" 2>"$errors")
    elif has wget; then
        if [ -z "$known" ]; then take wget -q -T 60 -t 3 -O "$file" "$url" 2>"$errors"; return; fi
        cp "$known" "$folder/.netrc"
        HOME=$folder take wget -S -T 60 -t 3 --max-redirect=0 -O "$file" "$url" 2>"$errors" && return
        rc=$?
        next=$(absolute "$(sed -n 's/^ *[Ll]ocation: *\([^ ]*\).*/\1/p' "$errors" | tail -n 1 | tr -d '\r')")
        rm -f "$folder/.netrc"
        [ -n "$next" ] || return $rc
    elif [ -x /usr/lib/apt/apt-helper ]; then
        set -- /usr/lib/apt/apt-helper -o Acquire::http::Timeout=60
        if [ -n "$known" ]; then # apt follows redirects to other ports with the login of the host
            (umask 077 && sed "s|^machine [^ ]*|machine ${url#https://}|" "$known" >"$folder/netrc") || return 1
            set -- "$@" -o "Dir::Etc::netrc=$folder/netrc" -o Acquire::http::AllowRedirect=false -o Acquire::https::AllowRedirect=false
        fi
        take "$@" download-file "$url" "$file" >/dev/null 2>"$errors"
    else
        echo 'the host has no curl, no wget and no apt-helper' >"$errors"; return 1
    fi
}
hops=0
while :; do
    ask
    rc=$?
    [ $rc -eq 0 ] && [ -n "$next" ] || break
    hops=$((hops + 1)) rc=1
    if [ $hops -gt 5 ]; then echo 'too many redirects' >"$errors"; break; fi
    case $next in
        http://* | https://*) ;;
        *) echo "it leads to $next" >"$errors"; break ;;
    esac
    [ "$(origin "$url")" = "$(origin "$next")" ] || known=''
    url=$next
    rm -f "$file"
done
if [ $rc -ne 0 ]; then
    if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then echo slow; exit 0; fi
    if [ -e "$file" ] && [ "$(wc -c <"$file")" -ge "$most" ]; then echo large; exit 0; fi
    # errors of curl and wget about a disk, not about the network
    if grep -qiE 'no space left|fail(ed|ure) writing|cannot write|read-only file system' "$errors" ||
        ! { printf x >>"$file"; } 2>/dev/null; then
        printf 'full %s\n' "$(tr '\n' ' ' <"$errors")"
        exit 0
    fi
    printf 'error %s\n' "$(tr '\n' ' ' <"$errors") (exit status $rc)"
    exit 0
fi
if [ -s "$file" ]; then base64 "$file"; else echo empty; fi
