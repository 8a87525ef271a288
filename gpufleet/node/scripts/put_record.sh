# put_record.sh STAGED PATH: replace PATH by STAGED, at once.
chmod 644 "$1" && mv -f "$1" "$2"
