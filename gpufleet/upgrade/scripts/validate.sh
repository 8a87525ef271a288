# validate.sh FOLDER VERSION TOOLKIT SECONDS MESSAGE: this host with VERSION of the driver and TOOLKIT of the container
# toolkit ("" for any), compared with what FOLDER says of it before.
folder=$1 version=$2 toolkit=$3 seconds=$4 message=$5
wrong=''
differs() { wrong="$wrong$1: expected $2, found ${3:-nothing}
"; }
before() { sed -n "s/^$1 //p" "$folder/health" 2>/dev/null; }
module=$(cat /sys/module/nvidia/version 2>/dev/null)
[ "$module" = "$version" ] || differs 'loaded module' "$version" "$module"
there=$(nvidia-ctk --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
[ -z "$toolkit" ] || [ "$there" = "$toolkit" ] || differs nvidia-ctk "$toolkit" "$there"
for unit in $(before unit); do
    systemctl is-active -q "$unit" || systemctl start "$unit" 2>/dev/null
    systemctl is-active -q "$unit" || differs "unit $unit" active "$(systemctl is-active "$unit" 2>/dev/null)"
done
wanted=$(before gpus) # more are no fault: the change may have returned one that was lost
gpus=$(timeout -k 10 "$seconds" nvidia-smi -L 2>&1 | grep -c '^GPU ')
[ "$gpus" -ge "${wanted:-0}" ] || differs "GPUs of nvidia-smi -L within $seconds s" "$wanted" "$gpus"
old=$(before xids) new=$(xids) boot=$(before boot)
[ "${boot:-$(boot_id)}" = "$(boot_id)" ] || old=0 # the log begins with the boot
case $old,$new in
    *-*) ;;
    *) [ "$new" -le "${old:-0}" ] || differs 'Xid errors in the log of the kernel' "$old" "$new" ;;
esac
for spec in /etc/cdi/*.yaml /etc/cdi/*.json /var/run/cdi/*.yaml /var/run/cdi/*.json; do
    [ -e "$spec" ] || continue
    library=$(grep -oE 'libnvidia-ml\.so\.[0-9]+\.[0-9.]*[0-9]' "$spec" | head -n 1)
    case ${library:-none} in none | *.so."$version") ;; *) differs "$spec" "$version" "$library" ;; esac
done
[ -z "$wrong" ] || fail "$message" "$wrong"
