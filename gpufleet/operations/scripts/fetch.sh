# fetch.sh URL: the bytes at URL as base64, or `error TEXT`. Always exits 0: the reader decides.
file=$(mktemp) || exit 1
trap 'rm -f "$file" "$file.err"' EXIT
if has curl; then
    curl -fsSL --connect-timeout 20 --max-time 120 --retry 2 -o "$file" "$1" 2>"$file.err"
elif has wget; then
    wget -q -T 60 -t 3 -O "$file" "$1" 2>"$file.err"
elif [ -x /usr/lib/apt/apt-helper ]; then
    /usr/lib/apt/apt-helper -o Acquire::http::Timeout=60 download-file "$1" "$file" >/dev/null 2>"$file.err"
else
    echo 'the host has no curl, no wget and no apt-helper' >"$file.err"; false
fi
rc=$?
if [ $rc -ne 0 ]; then
    printf 'error %s\n' "$(tr '\n' ' ' <"$file.err") (exit status $rc)"
    exit 0
fi
base64 "$file"
