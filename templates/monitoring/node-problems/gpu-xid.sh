#!/bin/sh
# Did the driver report an Xid of these codes, or one of other codes, in the last SECONDS?
#   gpu-xid.sh SECONDS only|except CODE...
set -u
# shellcheck source=kernel-log.sh
. "${0%/*}/kernel-log.sh"

messages "$1"
which=$2
shift 2
last=
while read -r text; do
    case $text in
    "NVRM: Xid ("*"): "[0-9]*) ;;
    *) continue ;;
    esac
    rest=${text#*"): "}
    code=${rest%%[!0-9]*}
    case " $* " in
    *" $code "*) is=only ;;
    *) is=except ;;
    esac
    [ "$is" = "$which" ] || continue
    gpu=${text#*"("}
    last="Xid $code on ${gpu%%")"*}${rest#"$code"}"
done <<MESSAGES
$found
MESSAGES
[ -z "$last" ] || answer 1 "$last"
answer 0 "no such Xid in the last $1 s"
