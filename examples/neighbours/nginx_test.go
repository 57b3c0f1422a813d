package neighbours

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

// teller is a server that tells the key that it has for a request.
func teller(t *testing.T, key gate.Key) (addr string) {
	t.Helper()
	server := httptest.NewServer(nethttp.Middleware(told(key))(http.NotFoundHandler()))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// before is nginx.conf before one server.
func before(t *testing.T, addr string, pairs ...string) string {
	t.Helper()
	return recipe(t, "nginx.conf", append([]string{firstLine, "server " + addr + ";", secondLine, ""}, pairs...)...)
}

// The clients of these tests have 127.0.0.2 and 127.0.0.3, and nginx calls from 127.0.0.1.
const (
	nginxAlone = "127.0.0.1/32"
	forged     = "203.0.113.9"
)

// others are the fields that no recipe reads.
var others = http.Header{"X-Real-Ip": {forged}, "Forwarded": {"for=" + forged}, "True-Client-Ip": {forged}}

func TestBehindNginx(t *testing.T) {
	t.Parallel()
	requireNginx(t)
	for what, c := range map[string]struct {
		key          gate.Key
		line         string // in the place of the one that names the client
		plain, lying string // the keys of a client, and of the same one that forges
	}{
		"the recipe":              {BehindProxies(nginxAlone), clientLine, "ip=127.0.0.2", "ip=127.0.0.2"},
		"one hop by $remote_addr": {BehindProxies(nginxAlone), "proxy_set_header X-Forwarded-For $remote_addr;", "ip=127.0.0.2", "ip=127.0.0.2"},
		"no trusted proxy":        {BehindProxies(), clientLine, "ip=127.0.0.1", "ip=127.0.0.1"},
		"no line":                 {BehindProxies(nginxAlone), "", "ip=127.0.0.1", "ip=" + forged},
		"another field set in the location": {BehindProxies(nginxAlone),
			"location /orders { proxy_pass http://service; proxy_set_header Host shop; } " + clientLine, "ip=127.0.0.1", "ip=" + forged},
		"too many are trusted":   {BehindProxies("127.0.0.0/8"), clientLine, "ip=127.0.0.2", "ip=" + forged},
		"X-Real-IP in its place": {BehindProxies(nginxAlone), "proxy_set_header X-Real-IP $remote_addr;", "ip=127.0.0.1", "ip=" + forged},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := "http://" + startNginx(t, before(t, teller(t, c.key), clientLine, c.line)) + "/orders"
			if _, got := send(t, "127.0.0.2", "GET", url, nil); got != c.plain {
				t.Errorf("a client: got the key %q, want %q", got, c.plain)
			}
			if _, got := send(t, "127.0.0.2", "GET", url, others); got != c.plain {
				t.Errorf("a client that sends %v: got the key %q, want %q", others, got, c.plain)
			}
			lie := others.Clone()
			lie.Set("X-Forwarded-For", forged)
			if _, got := send(t, "127.0.0.2", "GET", url, lie); got != c.lying {
				t.Errorf("a client that forges: got the key %q, want %q", got, c.lying)
			}
		})
	}
}

// The outer nginx calls the inner one from 127.0.0.9.
func TestBehindTwoNginx(t *testing.T) {
	t.Parallel()
	requireNginx(t)
	const outer = "127.0.0.9/32"
	inner := recipe(t, "nginx_inner.conf", "192.0.2.9", "127.0.0.9")
	for what, c := range map[string]struct {
		key  gate.Key
		conf string // of the inner one, before its server
		line string
		want string
	}{
		"both are trusted":                   {BehindProxies(nginxAlone, outer), "", clientLine, "ip=127.0.0.2"},
		"the inner one is trusted":           {BehindProxies(nginxAlone), "", clientLine, "ip=127.0.0.9"},
		"the inner one by real_ip":           {BehindProxies(nginxAlone), inner, clientLine, "ip=127.0.0.2"},
		"both, and the inner one by real_ip": {BehindProxies(nginxAlone, outer), inner, clientLine, "ip=127.0.0.2"},
		"the inner one overwrites":           {BehindProxies(nginxAlone, outer), "", "proxy_set_header X-Forwarded-For $remote_addr;", "ip=127.0.0.9"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			behind := startNginx(t, c.conf+before(t, teller(t, c.key), clientLine, c.line))
			url := "http://" + startNginx(t, before(t, behind, clientLine, clientLine+" proxy_bind 127.0.0.9;")) + "/"
			for _, header := range []http.Header{nil, others, line("X-Forwarded-For", forged), line("X-Forwarded-For", forged+", 127.0.0.9, 127.0.0.1")} {
				if _, got := send(t, "127.0.0.2", "GET", url, header); got != c.want {
					t.Errorf("with the header %v: got the key %q, want %q", header, got, c.want)
				}
			}
		})
	}
}

// Over a unix socket nginx has no address that could be listed.
func TestBehindNginxOnASocket(t *testing.T) {
	t.Parallel()
	requireNginx(t)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nethttp.Middleware(told(gate.ByIP(&gate.IPOptions{TrustUnixSocket: true})))(http.NotFoundHandler()))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	url := "http://" + startNginx(t, before(t, "unix:"+socket)) + "/"
	for _, header := range []http.Header{nil, others, line("X-Forwarded-For", forged)} {
		if _, got := send(t, "127.0.0.2", "GET", url, header); got != "ip=127.0.0.2" {
			t.Errorf("with the header %v: got the key %q, want that of 127.0.0.2", header, got)
		}
	}
}
