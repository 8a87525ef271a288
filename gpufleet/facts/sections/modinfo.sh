# The nvidia module on disk for $release; $ondisk: there is one. Parsed by hardware.py.
ondisk=
[ -d "/lib/modules/$release" ] && modinfo nvidia nvidia-current |
    grep -E '^(filename|version|license|signer):' && ondisk=yes
