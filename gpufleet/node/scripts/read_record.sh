# read_record.sh PATH: a file as base64; nothing if it does not exist.
[ -e "$1" ] || exit 0
base64 <"$1"
