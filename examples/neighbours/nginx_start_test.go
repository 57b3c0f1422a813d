package neighbours

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// requireNginx finds nginx. The clients of its tests have addresses of their own, which
// only Linux has for nothing.
func requireNginx(t *testing.T) (binary string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the tests behind nginx use 127.0.0.2 and its like, which only Linux has")
	}
	return redistest.NeedProgram(t, "nginx", "apt-get install nginx, or make nginx")
}

// recipe is a file of this directory, with parts replaced: pairs of what it has,
// which must be there, and what takes its place.
func recipe(t *testing.T, file string, pairs ...string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	conf := string(text)
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(conf, pairs[i]) != 1 {
			t.Fatalf("%s has %q %d times, want it once", file, pairs[i], strings.Count(conf, pairs[i]))
		}
		conf = strings.Replace(conf, pairs[i], pairs[i+1], 1)
	}
	return conf
}

// listen and the servers are what each test replaces.
const (
	listenLine = "listen 8080;"
	firstLine  = "server 127.0.0.1:8081;"
	secondLine = "server 127.0.0.1:8082;"
	clientLine = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
)

// startNginx starts an nginx with the configuration of its http block, in which
// listenLine stands for a free port, and returns its address.
func startNginx(t *testing.T, conf string) string {
	t.Helper()
	binary := requireNginx(t)
	return redistest.StartProgram(t, func(addr string) *exec.Cmd {
		dir := t.TempDir()
		around := `daemon off; master_process off; pid nginx.pid; error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
`
		file := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(file, []byte(around+strings.Replace(conf, listenLine, "listen "+addr+";", 1)+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command(binary, "-p", dir, "-e", "stderr", "-c", file)
	}, redistest.Listens)
}

// client connects from an address of its own.
func client(ip string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// send is a request from ip, and the whole answer.
func send(t *testing.T, ip, method, url string, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header.Clone()
	}
	response, err := client(ip).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}
