# keep_files.sh FOLDER PATH...: copies of files under FOLDER, which holds nothing else afterwards.
folder=$1; shift
rm -rf "$folder" && mkdir -p -m 700 "$folder" || exit 1
for path; do
    [ -e "$path" ] || continue
    mkdir -p "$folder$(dirname "$path")" && cp -p "$path" "$folder$path" || exit 1
done
exit 0
