# note.sh FOLDER MESSAGE: the host is about to be changed; without FOLDER it was not prepared.
[ -d "$1" ] || fail "$2"
note_once "$1" changing
