# keep_files.sh FOLDER PATH...: copy files to FOLDER, which has nothing else afterwards.
folder=$1; shift
rm -rf "$folder" && mkdir -p -m 700 "$folder" || exit 1
for path; do
    [ -e "$path" ] || continue
    mkdir -p "$folder$(dirname "$path")" && cp -p "$path" "$folder$path" || exit 1
done
exit 0
