# packages_before.sh FILE: note which packages are there, for a later removal, and that none of gpufleet's came
# yet (FILE.ours). What was begun and not recorded goes on: its notes are still the ones to compare with.
file=$1
if [ -e "$file" ] && { [ -e "$file.begun" ] || [ -s "$file.ours" ]; }; then
    # earlier versions of gpufleet noted only what they asked for by name
    [ -e "$file.ours" ] || cp "$file.begun" "$file.ours" || exit 1
    exit 0
fi
mkdir -p -m 700 "$(dirname "$file")" && packages_there >"$file.new" && : >"$file.ours" && mv "$file.new" "$file"
