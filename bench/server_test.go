package main

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// What a script or a transaction calls is in its own time already: only what
// clients send counts, and a command that both call counts by its share.
func TestTimeIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	const db = 7
	rdb := env{s.addr, db}.client()
	defer rdb.Close()
	other := env{s.addr, db + 1}.client()
	defer other.Close()
	ctx := t.Context()
	heard, err := s.watch(ctx, db, func() error {
		for range 2 {
			if err := rdb.Get(ctx, "k").Err(); err != redis.Nil {
				return err
			}
			if err := other.Incr(ctx, "k").Err(); err != nil {
				return err
			}
		}
		if err := rdb.Eval(ctx, "redis.call('SET', KEYS[1], '1') return redis.call('GET', KEYS[1])", []string{"k"}).Err(); err != nil {
			return err
		}
		_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Get(ctx, "k")
			p.IncrBy(ctx, "k", 2)
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	share := heard.share()
	for name, want := range map[string]float64{"get": 0.5, "eval": 1, "multi": 1, "exec": 1, "set": 0, "incrby": 0, "incr": 0} {
		if share[name] != want {
			t.Errorf("of %s %.2f counts, want %.2f (heard %v)", name, share[name], want, heard)
		}
	}
}

func TestMonitoredLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"+1700000000.1 [3 127.0.0.1:4711] \"GET\" \"a b\"\r\n":        "127.0.0.1:4711 get",
		"+1700000000.1 [3 lua] \"set\" \"k\" \"] [4 lua] \\\"\"\r\n":  "lua set",
		"+1700000000.1 [4 127.0.0.1:4711] \"GET\" \"k\"\r\n":          "",
		"+1700000000.1 [3 127.0.0.1:4711] \"hello\" \"3\"\r\n":        "",
		"+1700000000.1 [3 127.0.0.1:4711] \"CLIENT\" \"SETINFO\"\r\n": "",
		"+OK\r\n": "",
	} {
		from, name, ok := monitored(line, 3)
		if got := from + " " + name; ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %t; want %q", line, got, ok, want)
		}
	}
}

func TestCallsAndTrips(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	for db, c := range contestants() {
		var admitted, denied string
		switch c.name {
		case bucketName:
			admitted, denied = "EVALSHA: 1", "EVALSHA: 1"
		case "throttled":
			admitted, denied = "TIME GET EVAL: 2", "TIME GET: 1"
		case "httprate":
			admitted, denied = "MGET MULTI EXEC: 2", "MGET: 1"
		case "tutorial GET/INCR/SETEX window":
			admitted, denied = "GET INCR: 2", "GET: 1"
		default:
			continue
		}
		one, err := s.call(t.Context(), c, env{s.addr, db}, ample, false)
		if got := commands(one); got != admitted || err != nil {
			t.Errorf("%s, admitted: %s, %v; want %s", c.name, got, err, admitted)
		}
		one, err = s.call(t.Context(), c, env{s.addr, db}, spent, true)
		if got := commands(one); got != denied || err != nil {
			t.Errorf("%s, denied: %s, %v; want %s", c.name, got, err, denied)
		}
	}
}

func TestWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	for db, c := range contestants() {
		var want facts
		switch c.name {
		case bucketName:
		case "neap set of two":
			want.keys = 2
		case "tutorial HMGET/HMSET bucket":
			want = facts{writes: true, immortal: true}
		default:
			continue
		}
		var got facts
		if err := s.keep(t.Context(), c, env{s.addr, db}, &got); err != nil {
			t.Fatal(err)
		}
		var err error
		if got.writes, err = s.writesOnDenial(t.Context(), c, env{s.addr, db}); err != nil {
			t.Fatal(err)
		}
		if got.writes != want.writes || got.immortal != want.immortal || got.keys != max(1, want.keys) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if per := got.bytes / got.keys; per < 40 || per > 200 {
			t.Errorf("%s: a key of %.0f bytes", c.name, per)
		}
	}
}

// Callers on several instances find what reads first and writes later.
func TestContentionTellsExactFromRacy(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	for db, c := range contestants() {
		switch c.name {
		case bucketName:
			admitted, failed, err := s.contend(t.Context(), c, env{s.addr, db})
			if admitted != 1000 || failed != 0 || err != nil {
				t.Errorf("%s admitted %d, failed %d times, %v", c.name, admitted, failed, err)
			}
		case "tutorial GET/INCR/SETEX window":
			for range 20 {
				admitted, _, err := s.contend(t.Context(), c, env{s.addr, db})
				if err != nil {
					t.Fatal(err)
				}
				if admitted > 1000 {
					return
				}
			}
			t.Errorf("%s never admitted more than 1000", c.name)
		}
	}
}
