# take.sh FOLDER VERSION LACKING DAMAGED: the packages of VERSION are in FOLDER, for a roll-back; the host is compared
# with what it is now.
folder=$1 version=$2 lacking=$3 damaged=$4
kept "$folder" "$version" "$lacking" "$damaged"
if [ -e "$folder/health" ]; then # units may have been added or removed since
    { grep -v '^unit ' "$folder/health"; active_units; } >"$folder/health.new" &&
        mv "$folder/health.new" "$folder/health" || exit 1
fi
rm -f "$folder/noted"
