# note.sh FOLDER MESSAGE WORD: the host is about to be changed; without FOLDER it was not prepared.
# WORD: "restoring" for a roll-back, which is another attempt.
[ -d "$1" ] || fail "$2"
note_once "$1" "${3:-changing}"
