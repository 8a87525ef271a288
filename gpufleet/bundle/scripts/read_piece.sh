# read_piece.sh PATH NUMBER BYTES: piece NUMBER of a file, as base64.
dd if="$1" bs="$3" skip="$2" count=1 iflag=fullblock 2>/dev/null | base64 -w 16384
