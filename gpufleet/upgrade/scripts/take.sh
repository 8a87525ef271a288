# take.sh FOLDER VERSION UNUSABLE: the packages of VERSION are in FOLDER, for a roll-back; the host is compared
# with what it is now.
folder=$1
kept "$folder" "$2" "$3"
if [ -e "$folder/health" ]; then # units may have been added or removed since
    { grep -v '^unit ' "$folder/health"; active_units; } >"$folder/health.new" &&
        mv "$folder/health.new" "$folder/health" || exit 1
fi
rm -f "$folder/noted"
