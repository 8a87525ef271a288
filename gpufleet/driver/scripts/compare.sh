# compare.sh VERSION MESSAGE: the loaded module and the user-space library must both be VERSION.
version=$1 message=$2
module=$(cat /sys/module/nvidia/version 2>/dev/null)
library=''
for link in /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1 \
    /usr/lib64/libnvidia-ml.so.1 /usr/lib/libnvidia-ml.so.1; do
    if [ -e "$link" ]; then library=$(readlink -f "$link"); library=${library##*libnvidia-ml.so.}; break; fi
done
if [ "$module" != "$version" ] || [ "$library" != "$version" ]; then
    fail "$message" "loaded module: ${module:-none}; library: ${library:-none}"
fi
exit 0
