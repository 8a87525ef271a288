# read_record.sh PATH: a file as base64; nothing where there is none.
[ -e "$1" ] || exit 0
base64 <"$1"
