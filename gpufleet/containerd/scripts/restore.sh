# restore.sh PATH SHA256 KEPT: put KEPT back at PATH, unless PATH was changed since gpufleet wrote it.
now=$(sha256sum "$1" 2>/dev/null | cut -d' ' -f1)
[ "$now" = "$2" ] && [ -e "$3" ] || exit 0
cp -p "$3" "$1" || exit 1
