# fetch.sh URL LOGIN: the bytes at URL as base64, `empty`, `error TEXT`, or `full TEXT` where the host cannot keep
# them. Always exits 0: the reader decides. LOGIN is a file of netrc's form, which is removed; "" for none.
login=${2:-} folder=''
trap 'rm -rf "$folder"; rm -f "$login"' EXIT
folder=$(mktemp -d 2>&1) || { printf 'full %s\n' "$folder"; folder=''; exit 0; } # a name beside a file could be a link
file=$folder/answer errors=$folder/errors
if has curl; then
    curl -fsSL ${login:+--netrc-file "$login"} --connect-timeout 20 --max-time 120 --retry 2 -o "$file" "$1" 2>"$errors"
elif has wget; then
    if [ -n "$login" ]; then cp "$login" "$folder/.netrc"; HOME=$folder; fi
    wget -q -T 60 -t 3 -O "$file" "$1" 2>"$errors"
elif [ -x /usr/lib/apt/apt-helper ]; then
    /usr/lib/apt/apt-helper ${login:+-o "Dir::Etc::netrc=$login"} -o Acquire::http::Timeout=60 download-file "$1" "$file" >/dev/null 2>"$errors"
else
    echo 'the host has no curl, no wget and no apt-helper' >"$errors"; false
fi
rc=$?
if [ $rc -ne 0 ]; then
    # what curl and wget say of a disk, and nothing of the network
    if grep -qiE 'no space left|fail(ed|ure) writing|cannot write|read-only file system' "$errors" ||
        ! { printf x >>"$file"; } 2>/dev/null; then
        printf 'full %s\n' "$(tr '\n' ' ' <"$errors")"
        exit 0
    fi
    printf 'error %s\n' "$(tr '\n' ' ' <"$errors") (exit status $rc)"
    exit 0
fi
if [ -s "$file" ]; then base64 "$file"; else echo empty; fi
