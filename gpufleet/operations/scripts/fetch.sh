# fetch.sh URL: the bytes at URL as base64, or `error TEXT`. Always exits 0: the reader decides.
folder=$(mktemp -d) || exit 1 # a name of our own beside another file could be anybody's link
trap 'rm -rf "$folder"' EXIT
file=$folder/answer errors=$folder/errors
if has curl; then
    curl -fsSL --connect-timeout 20 --max-time 120 --retry 2 -o "$file" "$1" 2>"$errors"
elif has wget; then
    wget -q -T 60 -t 3 -O "$file" "$1" 2>"$errors"
elif [ -x /usr/lib/apt/apt-helper ]; then
    /usr/lib/apt/apt-helper -o Acquire::http::Timeout=60 download-file "$1" "$file" >/dev/null 2>"$errors"
else
    echo 'the host has no curl, no wget and no apt-helper' >"$errors"; false
fi
rc=$?
if [ $rc -ne 0 ]; then
    printf 'error %s\n' "$(tr '\n' ' ' <"$errors") (exit status $rc)"
    exit 0
fi
base64 "$file"
