# note.sh FOLDER RUN STATE MESSAGE OTHER: write down where the change of this host is; without FOLDER it was not
# prepared. With OTHER it fails where FOLDER belongs to another run.
folder=$1 run=$2 state=$3 message=$4 other=$5
[ -d "$folder" ] || fail "$message"
own "$folder" "$run" "$other"
# one that is resumed has begun before: the errors since then are its own
if [ "$(state_of "$folder")" != "$state" ]; then note_xids "$folder"; fi
mark "$folder" "$state" "$run"
