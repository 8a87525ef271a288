# fetch.sh MANAGER URL LOGIN BYTES SECONDS SOURCE: the bytes at URL as base64, `empty`, `error TEXT`, `large` if there are more
# than BYTES, `slow` if they take more than SECONDS, or `full TEXT` if the host cannot store them. Always exits 0:
# the reader decides. LOGIN is a netrc file, which is removed; "" for none. It is sent only to the scheme, host and
# port of URL: curl and wget match a login by the host's name, so they must not follow redirects. The way is that of
# the package manager: apt's own program, or the proxy of yum and dnf, of their main section or of the file SOURCE.
manager=$1 url=$2 login=${3:-} most=$4 seconds=$5 source=${6:-} folder='' next=''
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
settings() { # every line that says how yum or dnf reaches a repository, by its own program where there is one
    dnf -q config-manager --dump || yum-config-manager main || cat /etc/yum.conf /etc/dnf/dnf.conf
    echo '[main]' # the settings of a repository count like those of all, and come later
    [ -z "$source" ] || grep -v '^\[' "$source"
}
proxy() { # KEY: proxy, proxy_username or proxy_password; "" for none
    awk -v key="$1" '/^\[/ { main = /^\[main\]/ } main && $0 ~ "^" key "[ \t]*=" {
        sub(/^[^=]*=[ \t]*/, ""); sub(/[ \t\r]+$/, ""); value = $0 }
        END { if (tolower(value) !~ /^(_?none_?|false)$/) print value }' "$folder/settings"
}
quoted() { printf '%s' "$1" | sed 's/[\\"]/\\&/g'; }
use_proxy() { # files for curl and wget: other processes can read the words of a command
    settings >"$folder/settings" 2>/dev/null
    : >"$folder/curl"
    place=$(proxy proxy) user=$(proxy proxy_username) word=$(proxy proxy_password)
    [ -n "$place" ] || return 0
    printf 'proxy = "%s"\nproxy-anyauth\n' "$(quoted "$place")" >"$folder/curl"
    [ -z "$user" ] || printf 'proxy-user = "%s:%s"\n' "$(quoted "$user")" "$(quoted "$word")" >>"$folder/curl"
    printf 'use_proxy = on\nhttp_proxy = %s\nhttps_proxy = %s\n' "$place" "$place" >"$folder/wget"
    [ -z "$user" ] || printf 'proxy_user = %s\nproxy_password = %s\n' "$user" "$word" >>"$folder/wget"
    WGETRC=$folder/wget
    export WGETRC
}
ask() { # one answer, or all of them up to the last where no login is at stake; `next`: where a redirect leads
    next=''
    if [ -n "$helper" ]; then
        set -- "$helper" -o Acquire::http::Timeout=30 -o Acquire::Retries=1
        if [ -n "$known" ]; then # apt follows redirects to other ports with the login of the host
            (umask 077 && sed "s|^machine [^ ]*|machine ${url#https://}|" "$known" >"$folder/netrc") || return 1
            set -- "$@" -o "Dir::Etc::netrc=$folder/netrc" -o Acquire::http::AllowRedirect=false -o Acquire::https::AllowRedirect=false
        fi
        take "$@" download-file "$url" "$file" >/dev/null 2>"$errors"
    elif has curl; then
        set -- curl -fsS --connect-timeout 20 --retry 2 --config "$folder/curl" -o "$file"
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
    else
        echo 'the host has no curl, no wget and no apt-helper' >"$errors"; return 1
    fi
}
helper=/usr/lib/apt/apt-helper
if [ "$manager" != apt ] || [ ! -x "$helper" ]; then helper='' && use_proxy; fi
hops=0
while :; do
    ask
    rc=$?
    # a mirror with a login that redirects: with curl and wget the login stays there
    if [ $rc -ne 0 ] && [ -n "$helper" ] && [ -n "$known" ] && grep -qE ' 30[1-8] ' "$errors" && { has curl || has wget; }; then
        helper='' && use_proxy
        continue
    fi
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
    printf 'error %s\n' "$(grep -v 'unsandboxed as root' "$errors" | tr '\n' ' ') (exit status $rc)"
    exit 0
fi
if [ -s "$file" ]; then base64 "$file"; else echo empty; fi
