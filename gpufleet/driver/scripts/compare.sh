# compare.sh VERSION GPUS MESSAGE LOST: the loaded module and the user-space library must both be VERSION, else MESSAGE;
# nvidia-smi, where it is installed, must list GPUS, else LOST.
version=$1 gpus=$2 message=$3 lost=$4
module=$(cat /sys/module/nvidia/version 2>/dev/null)
library=''
for link in /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1 \
    /usr/lib64/libnvidia-ml.so.1 /usr/lib/libnvidia-ml.so.1; do
    if [ -e "$link" ]; then library=$(readlink -f "$link"); library=${library##*libnvidia-ml.so.}; break; fi
done
if [ "$module" != "$version" ] || [ "$library" != "$version" ]; then
    fail "$message" "loaded module: ${module:-none}; library: ${library:-none}"
fi
if has nvidia-smi; then
    out=$(timeout -k 10 120 nvidia-smi -L 2>&1)
    [ "$(printf '%s\n' "$out" | grep -c '^GPU ')" -ge "$gpus" ] || fail "$lost" "$out"
fi
exit 0
