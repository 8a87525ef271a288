# packages_added.sh FILE: the packages that were not there when FILE was written, also half done ones.
file=$1
[ -e "$file" ] || exit 0
if has dpkg-query; then
    dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^.[^nc]. //p' | sort -u | comm -13 "$file" -
else
    rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' | sed 's/^gpg-pubkey /gpg-pubkey-/; s/ .*//' | sort -u | comm -13 "$file" -
fi
exit 0
