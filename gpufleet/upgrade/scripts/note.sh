# note.sh FOLDER STATE MESSAGE: write down where the change of this host is; without FOLDER it was not prepared.
folder=$1 state=$2 message=$3
[ -d "$folder" ] || fail "$message"
printf '%s\n' "$state" >"$folder/state.new" && mv "$folder/state.new" "$folder/state"
