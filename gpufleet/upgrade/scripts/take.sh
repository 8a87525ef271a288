# take.sh FOLDER RUN ORIGIN VERSION LACKING DAMAGED OTHER: FOLDER, which ORIGIN has left with the packages of VERSION,
# belongs to RUN from now on. What RUN has taken stays its own. With OTHER it fails where another run has it, or where
# ORIGIN has not finished with it.
folder=$1 run=$2 origin=$3 version=$4 lacking=$5 damaged=$6 other=$7
if [ "$(run_of "$folder")" = "$run" ]; then exit 0; fi
[ -e "$folder/state" ] || fail "$lacking" 'there: nothing'
own "$folder" "$origin" "$other"
[ "$(state_of "$folder")" = changed ] || fail "$other" "run: $origin" "state: $(state_of "$folder")"
kept "$folder" "$version" "$lacking" "$damaged"
if [ -e "$folder/health" ]; then # units may have been added or removed since
    { grep -v '^unit ' "$folder/health"; active_units; } >"$folder/health.new" &&
        mv "$folder/health.new" "$folder/health" || exit 1
fi
note_xids "$folder"
mark "$folder" prepared "$run"
