# packages_before.sh FILE: note which packages are there, for a later removal. A transaction that has
# begun and was not recorded (FILE.begun) is still the one to compare with.
file=$1
if [ -e "$file" ] && [ -e "$file.begun" ]; then exit 0; fi
mkdir -p -m 700 "$(dirname "$file")" || exit 1
if has dpkg-query; then
    dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^.[^nc]. //p' | sort -u >"$file.new"
else
    # keys have one name for all
    rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' | sed 's/^gpg-pubkey /gpg-pubkey-/; s/ .*//' | sort -u >"$file.new"
fi || exit 1
mv "$file.new" "$file"
