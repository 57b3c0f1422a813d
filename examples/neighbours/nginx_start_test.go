package neighbours

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// nginx is where Debian has it, which is not in everybody's PATH.
var nginx = sync.OnceValue(func() string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
})

// requireNginx ends the test where it cannot run: as a failure under CI and in make soak,
// which installs nginx, and otherwise skipped. The clients of these tests have addresses of
// their own, which only Linux has for nothing.
func requireNginx(t *testing.T) {
	t.Helper()
	var why string
	switch {
	case runtime.GOOS != "linux":
		why = "the tests behind nginx use 127.0.0.2 and its like, which only Linux has"
	case nginx() == "":
		why = "nginx is not installed: apt-get install nginx, or make nginx"
	default:
		return
	}
	if os.Getenv("CI") == "true" || os.Getenv("NEAP_TEST_SCALE") != "" {
		t.Fatal(why)
	}
	warn(why)
	t.Skip(why)
}

// warn is seen without -v too, once a process, where there is a terminal.
var warn = func() func(string) {
	var once sync.Once
	return func(missing string) {
		once.Do(func() {
			if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
				defer tty.Close()
				fmt.Fprintf(tty, "\n*** neap: %s; the tests behind nginx are SKIPPED\n\n", missing)
			}
		})
	}
}()

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
	requireNginx(t)
	for range 5 { // another process may take the port before nginx does
		if addr, ok := tryNginx(t, conf); ok {
			return addr
		}
	}
	t.Fatal("nginx found no free port in five tries")
	return ""
}

func tryNginx(t *testing.T, conf string) (addr string, ok bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
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
	var said strings.Builder
	cmd := exec.Command(nginx(), "-p", dir, "-e", "stderr", "-c", file)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed, or has said why it ended
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if <-ended; t.Failed() {
			t.Logf("nginx said:\n%s", said.String())
		}
	})
	listens := false
	redistest.Await(t, 20*time.Second, "nginx to listen", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if listens = err == nil; listens {
			conn.Close()
		}
		return listens
	})
	if !listens && !strings.Contains(said.String(), "Address already in use") {
		t.Fatal("nginx did not start")
	}
	return addr, listens
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
