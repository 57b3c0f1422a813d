#!/bin/sh
# servers.sh [SERVER...]
# Runs the tests of everything that talks to Redis on each server in $wanted
# that a suite of Debian has. SERVER is a name such as valkey-9.1, and limits the
# run to it; it may be one that is not in $wanted. Set NIGHT=334, the day of the
# year, for a third of $wanted: three nights in a row run all. Set FETCH_ONLY=1 to
# run no test and print what to set REDIS_SERVER to.
#
# It installs nothing. apt works in a directory of its own, asks the mirrors
# that this system asks, and checks their signatures by Debian's keyring. Each
# server is unpacked into .bin/servers with its own libraries, its own libc and
# its own dynamic loader, which starts it.
#
# It fails if a test fails, if a server that a suite has cannot be fetched or
# started, and if there is none. A server that no suite has is reported.
set -eu

# Every third is of one night: a Redis and a Valkey. Redis 6.2 has all that the scripts
# use, and no suite has it.
wanted='redis-7.0 redis-8.0 redis-8.6 valkey-8.0 valkey-8.1 valkey-9.1 redis-6.2'
packages='./lua/... ./core/script/... ./core/internal/wire/... ./core/store/... ./core/lock/... ./core/idempotency/... ./core/stock/... ./core/limit/... ./core/inflight/...'
# In this order: of several patch releases, the one that most people run.
suites='stable stable-backports oldstable oldstable-backports oldoldstable testing unstable experimental'

[ -z "${NIGHT:-}" ] || wanted=$(echo "$wanted" | tr ' ' '\n' | awk -v night="$NIGHT" 'NR % 3 == night % 3')
[ $# -eq 0 ] || wanted=$*
top=$(pwd)/.bin/servers
apt=$top/apt

give_up() {
	echo "servers: $*" >&2
	exit 1
}

# mirror ENDING: the address from which this system takes the suite that it is
# made of, or with -security that suite's security updates.
mirror() {
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v ending="$1" -v suites="$VERSION_CODENAME sid $suites" '
			BEGIN { split(suites, names, " "); for (i in names) known[names[i] ending] }
			$1 in known && $2 == "main" { print $3; exit }'
}

# configure writes what apt needs: a state of its own, in which nothing is
# installed, and for each suite a list of the sources that belong together.
configure() {
	[ -r /etc/os-release ] && command -v apt-get >/dev/null || give_up "this takes a Debian system, with apt"
	. /etc/os-release
	main=$(mirror '')
	security=$(mirror -security)
	[ -n "$main" ] || give_up "apt knows no mirror of Debian's main archive: see \`apt-get indextargets\`"
	trust=
	for keyring in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
		[ ! -r "$keyring" ] || trust="[signed-by=$keyring] "
	done

	mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/sources"
	: >"$apt/status"
	cat >"$apt/apt.conf" <<-END
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt";
		Dir::Cache::archives "$apt/archives";
		Dir::Cache::pkgcache "";
		Dir::Cache::srcpkgcache "";
		Dir::Log "$apt";
		Dir::Etc::sourceparts "-";
		APT::Sandbox::User "";
		APT::Install-Recommends "false";
		Acquire::Languages "none";
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
	END
	for suite in $suites; do
		case $suite in
		experimental) of='unstable experimental' ;;
		*-backports) of="${suite%-backports} $suite" ;;
		*) of=$suite ;;
		esac
		for part in $of; do
			echo "deb $trust$main $part main"
			case $part in
			stable | oldstable) [ -z "$security" ] || echo "deb $trust$security $part-security main" ;;
			esac
		done >"$apt/sources/$suite.list"
	done
	sort -u "$apt"/sources/*.list >"$apt/all.list"
}

# in_suite SUITE COMMAND ARGUMENT...: a command of apt that knows this suite
# alone, with the updates that belong to it.
in_suite() {
	prefer=
	case $1 in *-backports | experimental) prefer=$1 ;; esac # by itself apt takes nothing from there
	command=$2 sources=$apt/sources/$1.list
	shift 2
	"$command" -c "$apt/apt.conf" -o "Dir::Etc::sourcelist=$sources" -o "APT::Default-Release=$prefer" "$@"
}

# look writes a line for each server of each suite: redis-7.0.15, the suite, the
# package and its version in Debian.
look() {
	for suite in $suites; do
		for server in redis valkey; do
			debian=$(in_suite "$suite" apt-cache policy "$server-server" 2>/dev/null |
				awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }')
			[ -z "$debian" ] ||
				echo "$server-$(echo "$debian" | sed 's/^[0-9]*://; s/[-+~].*//') $suite $server $debian"
		done
	done | awk '!seen[$1]++'
}

# fetch NAME SUITE SERVER VERSION: unpacks a server, its tools, on which it
# leans, and what these need, and writes a wrapper that starts it.
fetch() {
	dir=$top/$1
	if [ "$(cat "$dir/version" 2>/dev/null)" != "$4" ]; then
		rm -rf "$dir" "$apt"/archives/*.deb
		mkdir -p "$dir"
		in_suite "$2" apt-get install -qq -y --download-only "$3-tools=$4" >/dev/null || return 1
		(cd "$apt/archives" && in_suite "$2" apt-get download -qq "$3-server=$4") || return 1
		for deb in "$apt"/archives/*.deb; do
			# The rest stays packed: some of it would be setuid. Most packages have no
			# member for most of the patterns, which tar takes for an error.
			dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir" --no-same-owner --wildcards --no-wildcards-match-slash \
				'./lib/*/*.so*' './usr/lib/*/*.so*' "./usr/bin/$3-*" 2>/dev/null || true
		done
		rm -f "$apt"/archives/*.deb
		echo "$4" >"$dir/version"
	fi
	loader=$(find "$dir" -name 'ld-linux*.so.*' | head -1)
	libraries=$(find "$dir" -name '*.so*' -exec dirname {} \; | sort -u | tr '\n' ':')
	[ -n "$loader" ] || return 1
	strange=$("$loader" --inhibit-cache --library-path "$libraries" --list "$dir/usr/bin/$3-server" |
		awk -v dir="$dir/" '/=>/ && index($3, dir) != 1') || return 1
	if [ -n "$strange" ]; then
		echo "servers: $1 would run with what is not its own:$strange" >&2
		return 1
	fi
	printf '#!/bin/sh\nexec "%s" --inhibit-cache --library-path "%s" "%s" "$@"\n' \
		"$loader" "$libraries" "$dir/usr/bin/$3-server" >"$dir/$3-server"
	chmod +x "$dir/$3-server"
	"$dir/$3-server" --version | grep -q "v=${1#*-} "
}

configure
echo "servers: reading what Debian's suites have"
# A suite that is gone from the mirror is no reason to stop; without a good
# signature apt takes nothing.
apt-get -c "$apt/apt.conf" -o "Dir::Etc::sourcelist=$apt/all.list" -qq update || true
look >"$top/found"
[ -s "$top/found" ] || give_up "no suite has a server: see what apt says above"

green= red= none=
for want in $wanted; do
	set -- $(awk -v want="$want" '$1 == want || index($1, want ".") == 1 { print; exit }' "$top/found")
	if [ $# -eq 0 ]; then
		none="$none $want"
		continue
	fi
	echo "--- $1, of Debian $2 ($4)"
	if ! fetch "$@"; then
		echo "servers: $1 could not be fetched, or does not start" >&2
		red="$red $1"
	elif [ -n "${FETCH_ONLY:-}" ]; then
		echo "REDIS_SERVER=$dir/$3-server"
	elif CI=true REDIS_SERVER="$dir/$3-server" go test ${TESTFLAGS:-} -count=1 -timeout 30m $packages; then
		green="$green $1"
	else
		red="$red $1"
	fi
done

echo "servers: Debian has $(awk '{ printf "%s%s (%s)", sep, $1, $2; sep = ", " }' "$top/found")"
echo "servers: green:${green:- none}"
echo "servers: red:${red:- none}"
echo "servers: asked for, and in no suite:${none:- none}"
[ -z "$red" ] || exit 1
[ -n "$green" ] || [ -n "${FETCH_ONLY:-}" ] || give_up "no suite has a server that was asked for"
