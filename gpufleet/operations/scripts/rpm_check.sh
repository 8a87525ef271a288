# rpm_check.sh MESSAGE NAME-VERSION...: yum exits 0 when it left a package out: look for each.
message=$1; shift
missing=''
for package; do
    rpm -q "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] || fail "$message" "not installed:$missing"
exit 0
