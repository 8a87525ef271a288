# The driver's libraries, listed in $libraries. Parsed by hardware.py.
set -- $(exist /usr/lib/*-linux-gnu/libnvidia-ml.so.[0-9]*.[0-9]* \
    /usr/lib/*-linux-gnu/nvidia/*/libnvidia-ml.so.[0-9]*.[0-9]* \
    /usr/lib64/libnvidia-ml.so.[0-9]*.[0-9]* /usr/lib64/nvidia/libnvidia-ml.so.[0-9]*.[0-9]* \
    /usr/lib/libnvidia-ml.so.[0-9]*.[0-9]*)
printf 'file %s\n' $*
libraries=$*
# The loader's link says which of several is used; with one file there is nothing to ask.
[ $# -gt 1 ] && for path in $(exist /usr/lib/*-linux-gnu/libnvidia-ml.so.1 \
    /usr/lib64/libnvidia-ml.so.1 /usr/lib/libnvidia-ml.so.1); do
    say "used $(readlink -f "$path")"
done
