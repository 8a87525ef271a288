# packages_before.sh FILE: note which packages are there, once per transaction, for a later removal.
file=$1
[ -e "$file" ] && exit 0
mkdir -p -m 700 "$(dirname "$file")" || exit 1
if has dpkg-query; then
    dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^.i. //p' | sort -u >"$file.new"
else
    rpm -qa --qf '%{NAME}\n' | sort -u >"$file.new"
fi || exit 1
mv "$file.new" "$file"
