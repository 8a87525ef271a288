# prepare.sh MESSAGE MODULES SYSCTLS: load the modules of one file, apply the settings of another.
message=$1 modules=$2 sysctls=$3
while read -r name; do
    out=$(modprobe "$name" 2>&1) || fail "$message" "$out"
done <"$modules"
out=$(sysctl -q -p "$sysctls" 2>&1) || fail "$message" "$out"
