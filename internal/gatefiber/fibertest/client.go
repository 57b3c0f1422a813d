package fibertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience bounds how long a client waits.
const patience = time.Minute

func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// exchanged writes raw on one connection, closes that direction, and returns
// the status and body of each response.
func exchanged(t testing.TB, address, raw string) (answers []string) {
	t.Helper()
	conn := dial(t, address)
	// A server that closes early may reset the connection while this goes on.
	_, _ = io.WriteString(conn, raw)
	_ = conn.(*net.TCPConn).CloseWrite()
	for in := bufio.NewReader(conn); ; {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return answers
		}
		body, _ := io.ReadAll(response.Body)
		answers = append(answers, fmt.Sprintf("%d %s", response.StatusCode, body))
	}
}

// answered writes one request in pieces, leaves the connection open, and returns the
// status and body of the response.
func answered(t testing.TB, address, raw string) string {
	t.Helper()
	conn := dial(t, address)
	header, body, _ := strings.Cut(raw, "\r\n\r\n")
	for _, piece := range append([]string{header + "\r\n\r\n"}, strings.Split(body, "")...) {
		if _, err := io.WriteString(conn, piece); err != nil {
			break // the server has answered, and said why
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, answer)
}

// get asks for a target, with lines as further fields.
func get(t testing.TB, address, target string, lines ...string) string {
	t.Helper()
	head := append([]string{"GET " + target + " HTTP/1.1", "Host: example.com"}, lines...)
	return answered(t, address, strings.Join(head, "\r\n")+"\r\n\r\n")
}

func posting(length int, body string) string {
	return fmt.Sprintf("POST /detail HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n%s", length, body)
}

// chunkedHead begins a chunked request. The caller adds fields and an empty line.
const chunkedHead = "POST /detail HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n"

// part is a part of a form as it is sent. It is a file if it has a kind.
type part struct{ name, kind, content string }

func form(boundary string, parts ...part) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=%q", boundary, p.name)
		if p.kind != "" {
			fmt.Fprintf(&b, "; filename=\"a.txt\"\r\nContent-Type: %s", p.kind)
		}
		fmt.Fprintf(&b, "\r\n\r\n%s\r\n", p.content)
	}
	return b.String() + "--" + boundary + "--\r\n"
}

// client has connections of its own: each httptest.Server that ends closes those of
// http.DefaultClient, also for a request that is about to be sent.
var client = &http.Client{Transport: &http.Transport{}}

// sentForm sends a form and returns the status, whether the answer was replayed, and the
// body of a success.
func sentForm(t testing.TB, address, boundary string, body io.Reader) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/orders", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", fmt.Sprintf("multipart/form-data; boundary=%q", boundary))
	r.Header.Set("Idempotency-Key", "k")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode >= 400 {
		answer = nil
	}
	return strings.TrimSpace(fmt.Sprintln(response.StatusCode, response.Header.Get("Idempotent-Replayed"), string(answer)))
}
