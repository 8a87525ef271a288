# drop_layout.sh MESSAGE PROGRAM FILE UNIT: whole GPUs with default limits, for every key that FILE manages, except ECC.
# What only a reset completes is left to the next load of the driver.
message=$1 program=$2 file=$3 unit=$4
disable_units "$unit" 2>/dev/null
systemctl stop "$unit" 2>/dev/null
[ -d /sys/module/nvidia ] && [ -x "$program" ] && [ -e "$file" ] || exit 0
wanted=$(mktemp) || exit 1
trap 'rm -f "$wanted"' EXIT
sed 's/ mig=[^ ]*/ mig=off/; s/ ecc=[^ ]*//; s/ power=[^ ]*/ power=default/; s/ clocks=[^ ]*/ clocks=default/
    s/ memory=[^ ]*/ memory=default/; s/ compute=[^ ]*/ compute=Default/' "$file" >"$wanted"
out=$("$program" "$wanted" 2>&1)
case $? in 0 | 3) ;; *) fail "$message" "$out" ;; esac
