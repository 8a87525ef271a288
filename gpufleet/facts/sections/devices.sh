# Device files. Parsed by parse.py.
for path in /dev/nvidia*; do [ -c "$path" ] && say "$path"; done
