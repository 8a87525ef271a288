# file_text.sh PATH: `file`, then its content in base64; nothing if it does not exist.
[ -e "$1" ] || exit 0
echo file
base64 <"$1"
