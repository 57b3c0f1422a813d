package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
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
	return &server{addr, redis.NewClient(&redis.Options{Addr: addr}), end}, nil
}

func (s *server) stop() error {
	return errors.Join(s.admin.Close(), s.end())
}

// host tells what the figures depend on.
func (s *server) host(ctx context.Context) (string, error) {
	info, err := s.info(ctx, "server")
	name, version := "Redis", info["redis_version"]
	if valkey, ok := info["valkey_version"]; ok {
		name, version = "Valkey", valkey
	}
	return fmt.Sprintf("%s/%s, %d cores for server and callers together, %s %s, %s",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), name, version, runtime.Version()), err
}

// counts are what a server has counted since it started.
type counts struct {
	cpu      float64            // of the process, in microseconds
	commands map[string]float64 // microseconds in each, calls of scripts and transactions too
	reads    int64              // from sockets
}

func (s *server) counts(ctx context.Context) (counts, error) {
	info, err := s.info(ctx, "commandstats", "stats", "cpu")
	if err != nil {
		return counts{}, err
	}
	var faults []error
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		faults = append(faults, err)
		return n
	}
	c := counts{
		cpu:      (number(info["used_cpu_user"]) + number(info["used_cpu_sys"])) * 1e6,
		reads:    int64(number(info["total_reads_processed"])),
		commands: map[string]float64{},
	}
	for name, value := range info {
		if name, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			_, rest, _ := strings.Cut(value, "usec=")
			usec, _, _ := strings.Cut(rest, ",")
			c.commands[name] = number(usec)
		}
	}
	return c, errors.Join(faults...)
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

// probes is how many calls tell what a contestant sends.
const probes = 100

// sent is what a contestant sends for one call.
type sent struct {
	commands []string // of the last call
	count    float64  // of commands, the mean of all calls
	trips    float64  // how often the server reads from a socket
	// share is how many of all runs of a command came from clients. The time of the
	// others is in the time of their script or transaction already.
	share map[string]float64
}

// probe makes calls one after the other, and listens with MONITOR.
func (s *server) probe(ctx context.Context, db int, call func(i int) error) (sent, error) {
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
	trips, err := s.trips(ctx, call)
	const over = "neap-bench-over"
	if err := errors.Join(err, s.admin.Echo(ctx, over).Err()); err != nil {
		return sent{}, err
	}
	var outer []string // what clients send
	all, fromClients := map[string]float64{}, map[string]float64{}
	for inside := false; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return sent{}, err
		}
		if strings.Contains(line, over) {
			break
		}
		from, name, ok := monitored(line, db)
		if !ok {
			continue
		}
		all[name]++
		if from != "lua" && (!inside || name == "exec") {
			outer, inside = append(outer, name), name == "multi"
			fromClients[name]++
		}
	}
	for name, n := range fromClients {
		fromClients[name] = n / all[name]
	}
	return sent{outer[len(outer)-len(outer)/probes:], float64(len(outer)) / probes, trips, fromClients}, nil
}

// trips makes the calls, and counts how often the server reads from a socket for each.
// The end of a connection is a read too, so the first count waits for those that were
// closed before. The next two tell how many reads a count is itself.
func (s *server) trips(ctx context.Context, call func(i int) error) (float64, error) {
	var reads [4]int64
	for i := range reads {
		for n := 0; i == 3 && n < probes; n++ {
			if err := call(n); err != nil {
				return 0, err
			}
		}
		now, err := s.counts(ctx)
		if err != nil {
			return 0, err
		}
		reads[i] = now.reads
	}
	own := reads[2] - reads[1]
	return float64(reads[3]-reads[2]-own) / probes, nil
}

// monitored reads a line such as
//
//	+1700000000.000000 [3 127.0.0.1:4711] "GET" "key"
//
// of one database; the sender of what a script calls is lua. What a connection says of
// itself, and what the bench asks the server, is no part of a call.
func monitored(line string, db int) (from, name string, ok bool) {
	_, line, _ = strings.Cut(line, " [")
	sender, command, _ := strings.Cut(line, "] ")
	number, from, _ := strings.Cut(sender, " ")
	words := strings.SplitN(command, `"`, 3)
	if number != strconv.Itoa(db) || len(words) < 3 {
		return "", "", false
	}
	switch name = strings.ToLower(words[1]); name {
	case "hello", "client", "select", "ping", "auth", "command", "info":
		return "", "", false
	}
	return from, name, true
}
