# packages_before.sh FILE: note the installed packages for a later removal, and that gpufleet installed none yet
# (FILE.ours). Notes of an unrecorded run stay: they are the ones to compare with.
file=$1
if [ -e "$file" ] && { [ -e "$file.begun" ] || [ -s "$file.ours" ]; }; then
    # earlier versions of gpufleet noted only packages requested by name
    [ -e "$file.ours" ] || cp "$file.begun" "$file.ours" || exit 1
    exit 0
fi
mkdir -p -m 700 "$(dirname "$file")" && packages_there >"$file.new" && : >"$file.ours" && mv "$file.new" "$file"
