# apt_fetch.sh FOLDER [URL SHA256]...: download to FOLDER/SHA256 by apt's own methods, proxy and logins; `error TEXT`
# if that fails. apt compares the digests.
folder=$1; shift
mkdir -p "$folder"
while [ $# -gt 1 ]; do
    if ! out=$(/usr/lib/apt/apt-helper download-file "$1" "$folder/$2" "SHA256:$2" 2>&1); then
        printf 'error %s\n' "$(printf '%s\n' "$out" | grep '^E:' | head -n 2 | tr '\n' ' ')"
        exit 0
    fi
    shift 2
done
exit 0
