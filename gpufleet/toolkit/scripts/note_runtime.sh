# note_runtime.sh STAGED NOTE BACKUP: replace NOTE by STAGED atomically; a copy of NOTE goes to BACKUP.
staged=$1 note=$2 backup=$3
mkdir -p -m 700 "$(dirname "$backup")" || exit 1
if [ -e "$note" ]; then cp -p "$note" "$backup" || exit 1; fi
mv -f "$staged" "$note" || exit 1
exit 0
