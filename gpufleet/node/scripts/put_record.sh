# put_record.sh STAGED PATH SHA256 MESSAGE: replace PATH by STAGED if PATH still has SHA256 ("": does not
# exist). Of two runs that write at the same time, one waits for the other, and then fails.
staged=$1 path=$2 digest=$3 message=$4
trap 'rm -f "$staged"' EXIT
exec 9>"$path.lock" || exit 1
if has flock; then flock -w 60 9 || fail "$message" "another run holds $path.lock"; fi
now=$(sha256sum "$path" 2>/dev/null | cut -d' ' -f1)
[ "$now" = "$digest" ] || fail "$message" "sha256 now: ${now:-no file}"
chmod 644 "$staged" && mv -f "$staged" "$path" || exit 1
exit 0
