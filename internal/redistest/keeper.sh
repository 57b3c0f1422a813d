# Keeps one server: starts and stops it as standard input says, and kills it
# when standard input ends, which is when the process of tests is gone.
#   $1   the server's directory, removed at the end
#   $2…  the server's command line
dir=$1
shift
# Ctrl-C in a terminal reaches this shell too; only the pipe may end it.
trap '' HUP INT QUIT TERM PIPE
pid=
halt() {
	if [ -n "$pid" ]; then
		kill -KILL "$pid"
		wait "$pid"
		pid=
	fi
} 2>/dev/null
while read -r verb; do
	case $verb in
	start)
		# Emptied before the verb is answered: whoever waits for a line of
		# this start must not find one of the last.
		: >"$dir/log"
		"$@" </dev/null >>"$dir/log" 2>&1 &
		pid=$!
		;;
	stop) halt ;;
	pause) kill -STOP "$pid" ;;
	resume) kill -CONT "$pid" ;;
	esac
	echo "$verb"
done
halt
rm -rf -- "$dir"
