#!/bin/sh
# dependencies.sh
# Measures what neap costs an application, and prints what the tables of docs/dependencies.md are made from.
# For each framework it makes a small app that uses the framework and go-redis, and adds
# one limit by neap. Each has a module cache of its own, which is filled from this
# machine's, or from the Go module proxy.
#
# The second table is about apps that begin with older versions: which of the modules
# that they compile neap has raised.
set -eu
cd "$(dirname "$0")/.."
top=$(pwd)
module=github.com/neap-go/neap

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOPROXY GOWORK=off GOFLAGS='-modcacherw -trimpath -buildvcs=false' CGO_ENABLED=0

required() { go list -m -f '{{.Version}}' "$1"; }
redis=$(required github.com/redis/go-redis/v9)

# program ADAPTER: the app with a limit. Without the lines that end in "// neap" it is
# the app without.
program() {
	case $1 in
	nethttp) imports='"net/http"' serve='
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(rdb.Ping(r.Context()).Val()))
	})
	h = nethttp.Middleware(limited)(h) // neap
	log.Fatal(http.ListenAndServe(":8080", h))' ;;
	ginlimit) imports='"github.com/gin-gonic/gin"' serve='
	r := gin.Default()
	r.Use(ginlimit.Middleware(limited)) // neap
	r.GET("/", func(c *gin.Context) { c.String(200, rdb.Ping(c.Request.Context()).Val()) })
	log.Fatal(r.Run())' ;;
	echolimit) imports='"github.com/labstack/echo/v4"' serve='
	e := echo.New()
	e.Use(echolimit.Middleware(limited)) // neap
	e.GET("/", func(c echo.Context) error { return c.String(200, rdb.Ping(c.Request().Context()).Val()) })
	log.Fatal(e.Start(":8080"))' ;;
	echo5limit) imports='"github.com/labstack/echo/v5"' serve='
	e := echo.New()
	e.Use(echo5limit.Middleware(limited)) // neap
	e.GET("/", func(c *echo.Context) error { return c.String(200, rdb.Ping(c.Request().Context()).Val()) })
	log.Fatal(e.Start(":8080"))' ;;
	fiberlimit) imports='"github.com/gofiber/fiber/v2"' serve='
	app := fiber.New()
	app.Use(fiberlimit.Middleware(limited)) // neap
	app.Get("/", func(c *fiber.Ctx) error { return c.SendString(rdb.Ping(c.UserContext()).Val()) })
	log.Fatal(app.Listen(":8080"))' ;;
	fiber3limit) imports='"github.com/gofiber/fiber/v3"' serve='
	app := fiber.New()
	app.Use(fiber3limit.Middleware(limited)) // neap
	app.Get("/", func(c fiber.Ctx) error { return c.SendString(rdb.Ping(c.Context()).Val()) })
	log.Fatal(app.Listen(":8080"))' ;;
	hertzlimit) imports='"context"
			"github.com/cloudwego/hertz/pkg/app"
			"github.com/cloudwego/hertz/pkg/app/server"' serve='
	h := server.Default()
	h.Use(hertzlimit.Middleware(limited)) // neap
	h.GET("/", func(ctx context.Context, c *app.RequestContext) { c.String(200, rdb.Ping(ctx).Val()) })
	log.Fatal(h.Run())' ;;
	esac
	cat <<-END
		package main

		import (
			"log"
			"time" // neap

			"github.com/redis/go-redis/v9"

			"$module/core/gate" // neap
			"$module/core/limit" // neap
			"$module/$1" // neap
			$imports
		)

		func main() {
			rdb := redis.NewClient(&redis.Options{})
			limiter, err := limit.New(rdb, "api", []limit.Policy{limit.TokenBucket{Rate: 10, Per: time.Second}}, nil) // neap
			if err != nil { // neap
				log.Fatal(err) // neap
			} // neap
			limited := gate.RateLimit(limiter, gate.ByIP(nil), nil) // neap
			$serve
		}
	END
}

# app DIRECTORY ADAPTER WITH REQUIREMENT...: makes an app and tidies it. WITH is neap or
# nothing.
app() {
	dir=$work/$1 adapter=$2 with=$3
	shift 3
	mkdir -p "$dir"
	(
		cd "$dir"
		if [ "$with" = neap ]; then
			program "$adapter" >main.go
			cp "$work/before/go.mod" "$work/before/go.sum" .
			go mod edit -replace=$module="$top" -require=$module@v0.0.0
			case $adapter in
			*[35]limit | hertzlimit) go mod edit -replace=$module/"$adapter=$top/$adapter" -require=$module/"$adapter@v0.0.0" ;;
			esac
		else
			program "$adapter" | grep -v '// neap$' >main.go
			go mod init example.com/app
			for requirement; do
				go mod edit -require="$requirement"
			done
		fi
		if [ -n "$building" ]; then
			built
		else
			go mod tidy
			go list -deps -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' . | sort -u >linked
		fi
	) >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
}

# built tidies the app in this directory and builds it, each with an empty module cache,
# as on a machine that is new.
built() {
	GOMODCACHE=$work/tidied go mod tidy
	GOMODCACHE=$work/built go build -o app .
	for state in tidied built; do
		find "$work/$state/cache/download" -name '*.zip' -exec ls -l {} + |
			awk '{ n++; b += $5 } END { printf "%d (%.1f MB)\n", n, b / 1e6 }' >$state
		rm -rf "${work:?}/$state"
	done
	go version -m app | awk '$1 == "dep" { print $2, $3 }' >linked
	awk '{ print $1 }' go.sum | sort -u | wc -l | tr -d ' ' >sum
	ls -l app | awk '{ printf "%.1f MB\n", $5 / 1e6 }' >size
}

# raised: of the modules that the app compiled before, those with another version now.
raised() {
	awk 'NR == FNR { was[$1] = $2; next } $1 in was && was[$1] != $2 { sub(/^github.com\//, "", $1); printf "%s%s", comma, $1 " " $2; comma = ", " }
		END { if (!comma) printf "none" }' "$work/before/linked" "$work/after/linked"
}

both() { echo "$(cat "$work/before/$1") → $(cat "$work/after/$1")"; }
linked() { echo "$(wc -l <"$work/before/linked" | tr -d ' ') → $(wc -l <"$work/after/linked" | tr -d ' ')"; }

# measure ADAPTER REQUIREMENT...
measure() {
	rm -rf "$work/before" "$work/after"
	framework=$1
	shift
	app before "$framework" nothing "$@"
	app after "$framework" neap
}

latest() {
	case $1 in
	nethttp) ;;
	ginlimit) echo "github.com/gin-gonic/gin@$(required github.com/gin-gonic/gin)" ;;
	echolimit) echo "github.com/labstack/echo/v4@$(required github.com/labstack/echo/v4)" ;;
	fiberlimit) echo "github.com/gofiber/fiber/v2@$(required github.com/gofiber/fiber/v2)" ;;
	echo5limit) echo "github.com/labstack/echo/v5@$(cd echo5limit && required github.com/labstack/echo/v5)" ;;
	fiber3limit) echo "github.com/gofiber/fiber/v3@$(cd fiber3limit && required github.com/gofiber/fiber/v3)" ;;
	hertzlimit) echo "github.com/cloudwego/hertz@$(cd hertzlimit && required github.com/cloudwego/hertz)" ;;
	esac
}

echo "| adapter | modules in the binary | binary | downloaded to build | downloaded to tidy | modules in go.sum | raised |"
echo "|---|---|---|---|---|---|---|"
building=yes
for adapter in nethttp ginlimit echolimit fiberlimit echo5limit fiber3limit hertzlimit; do
	measure $adapter "github.com/redis/go-redis/v9@$redis" $(latest $adapter)
	echo "| \`$adapter\` | $(linked) | $(both size) | $(both built) | $(both tidied) | $(both sum) | $(raised) |"
done
echo
building=
echo "| the app requires | and gets |"
echo "|---|---|"
while read -r adapter requirements; do
	measure "$adapter" $requirements
	echo "| $(echo "$requirements" | sed 's|github.com/||g; s| |, |g; s|@| |g') | $(raised) |"
done <<END
nethttp github.com/redis/go-redis/v9@v9.7.0
ginlimit github.com/gin-gonic/gin@v1.9.1 github.com/redis/go-redis/v9@v9.7.0
echolimit github.com/labstack/echo/v4@v4.12.0 github.com/redis/go-redis/v9@v9.7.0
fiberlimit github.com/gofiber/fiber/v2@v2.52.0 github.com/redis/go-redis/v9@v9.7.0
END
