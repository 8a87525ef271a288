# read_state.sh FILE LOCK: who holds LOCK, "-" for nobody, then the content of FILE, where it is a regular file.
holder=-
if [ -e "$2" ]; then
    flock -s -n "$2" true
    if [ $? -eq 1 ]; then IFS= read -r holder <"$2"; fi
fi
printf '%s\n' "$holder"
if [ -f "$1" ] && [ ! -L "$1" ]; then head -c 8192 "$1"; fi
