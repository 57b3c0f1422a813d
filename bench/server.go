package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// databases is how many the server has: one for each contestant.
const databases = 64

// server is the redis-server that is measured on, and a client to ask it.
type server struct {
	addr  string
	admin *redis.Client
	end   func() error
}

func startServer() (*server, error) {
	addr, end, err := redistest.Start("--databases", strconv.Itoa(databases))
	if err != nil {
		return nil, err
	}
	return &server{addr: addr, admin: redis.NewClient(&redis.Options{Addr: addr}), end: end}, nil
}

func (s *server) stop() error {
	return errors.Join(s.admin.Close(), s.end())
}

// counts is what a server has counted since it started.
type counts struct {
	usec  map[string]float64 // by command, those of scripts and transactions too
	reads int64              // from sockets
}

func (s *server) counts(ctx context.Context) (counts, error) {
	info, err := s.info(ctx, "commandstats", "stats")
	c := counts{usec: map[string]float64{}}
	for name, value := range info {
		if name, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			_, rest, _ := strings.Cut(value, "usec=")
			usec, _, _ := strings.Cut(rest, ",")
			if c.usec[name], err = strconv.ParseFloat(usec, 64); err != nil {
				return c, fmt.Errorf("commandstats of %s, %q: %w", name, value, err)
			}
		}
	}
	if err == nil {
		c.reads, err = strconv.ParseInt(info["total_reads_processed"], 10, 64)
	}
	return c, err
}

// info is the fields of some sections of INFO.
func (s *server) info(ctx context.Context, sections ...string) (map[string]string, error) {
	fields := map[string]string{}
	for _, section := range sections {
		text, err := s.admin.Info(ctx, section).Result()
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				fields[name] = value
			}
		}
	}
	return fields, nil
}

// sent is what one database was sent: commands as clients send them, and
// those that scripts and transactions made of them.
type sent struct {
	outer  []string
	nested map[string]int
}

// share is how many of a command's calls came from clients. The others' time
// is in their script's or transaction's already.
func (s sent) share() map[string]float64 {
	share := map[string]float64{}
	for _, name := range s.outer {
		share[name]++
	}
	for name, n := range share {
		share[name] = n / (n + float64(s.nested[name]))
	}
	return share
}

// watch listens with MONITOR while f runs.
func (s *server) watch(ctx context.Context, db int, f func() error) (sent, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return sent{}, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return sent{}, err
	}
	lines := bufio.NewReader(conn)
	if _, err := lines.ReadString('\n'); err != nil {
		return sent{}, err
	}
	if err := f(); err != nil {
		return sent{}, err
	}
	const over = "neap-bench-over"
	if err := s.admin.Echo(ctx, over).Err(); err != nil {
		return sent{}, err
	}
	heard := sent{nested: map[string]int{}}
	for inside := false; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return sent{}, err
		}
		if strings.Contains(line, over) {
			return heard, nil
		}
		from, name, ok := monitored(line, db)
		switch {
		case !ok:
		case from == "lua" || inside && name != "exec":
			heard.nested[name]++
		case name == "multi":
			heard.outer, inside = append(heard.outer, name), true
		default:
			heard.outer, inside = append(heard.outer, name), false
		}
	}
}

// monitored reads a line such as
//
//	+1700000000.000000 [3 127.0.0.1:4711] "GET" "key"
//
// of one database; the sender of what a script calls is lua. What a
// connection says of itself is no part of a decision.
func monitored(line string, db int) (from, name string, ok bool) {
	_, line, _ = strings.Cut(line, " [")
	sender, command, _ := strings.Cut(line, "] ")
	number, from, _ := strings.Cut(sender, " ")
	words := strings.SplitN(command, `"`, 3)
	if number != strconv.Itoa(db) || len(words) < 3 {
		return "", "", false
	}
	switch name = strings.ToLower(words[1]); name {
	case "hello", "client", "select", "ping", "auth", "command":
		return "", "", false
	}
	return from, name, true
}
