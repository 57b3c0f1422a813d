package main

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

func testServer(t *testing.T) *server {
	t.Helper()
	redistest.Require(t)
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestLimitersAdmitTheirLimitAndDenyBeyond(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	for db, c := range slices.Concat(neaps(), peers(), tutorials()) {
		err := s.fresh(t.Context(), c, db, five, 1, func(_ *env, take []take) error {
			for _, key := range []string{"ip=192.0.2.1", "ip=192.0.2.2"} {
				limit := int(five.quota(c.group).limit)
				for n := 1; n <= limit+2; n++ {
					allowed, err := take[0](t.Context(), key)
					if want := n <= limit; err != nil || allowed != want && (want || !c.refills) {
						t.Errorf("%s, request %d of %s: allowed is %t, %v; the limit is %d", c.name, n, key, allowed, err, limit)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Each has a name and a database of its own, and a database is left for each.
func TestContestantsKeepApart(t *testing.T) {
	t.Parallel()
	for _, all := range [][]contestant{
		slices.Concat(floors(), neaps(), peers(), tutorials()), lockers(), guards(), fiberGuards(), callbacks(), sales(),
	} {
		if len(all) > databases || all[0].kind != floor {
			t.Errorf("%d contestants on %d databases, the first is %s", len(all), databases, all[0].name)
		}
		names := namesOf(all)
		slices.Sort(names)
		if len(slices.Compact(names)) != len(all) {
			t.Errorf("two have one name: %v", namesOf(all))
		}
		for _, c := range all {
			i := slices.IndexFunc(all, func(o contestant) bool { return o.name == c.variantOf })
			if c.variantOf != "" && (i < 0 || all[i].group != c.group) {
				t.Errorf("%s is a variant of %q", c.name, c.variantOf)
			}
		}
	}
}

// What a script or a transaction calls is in its own time already: only what clients
// send counts, and a command that both call counts by its share.
func TestTimeIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	var opened scope
	defer opened.close(new(error))
	const db = 7
	e, _ := s.env(&opened, plain, db)
	other, _ := s.env(&opened, plain, db+1)
	sent, err := s.probe(t.Context(), db, func(int) error {
		ctx := t.Context()
		for range 2 {
			if err := e.rdb.Get(ctx, "other").Err(); err != redis.Nil {
				return err
			}
			if err := other.rdb.Incr(ctx, "k").Err(); err != nil {
				return err
			}
		}
		script := "redis.call('SET', KEYS[1], '1') return redis.call('GET', KEYS[1])"
		if err := e.rdb.Eval(ctx, script, []string{"k"}).Err(); err != nil {
			return err
		}
		_, err := e.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Get(ctx, "k")
			p.IncrBy(ctx, "k", 2)
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string]float64{"get": 0.5, "eval": 1, "multi": 1, "exec": 1, "set": 0, "incrby": 0, "incr": 0}
	for name, want := range shares {
		if sent.share[name] != want {
			t.Errorf("of %s %.2f counts, want %.2f", name, sent.share[name], want)
		}
	}
	if want := []string{"get", "get", "eval", "multi", "exec"}; !slices.Equal(sent.commands, want) || sent.count != 5 {
		t.Errorf("each sends %s, %.2f commands", sent.commands, sent.count)
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

// Each column is what the report prints: what is sent when admitted and denied, whether a
// denial writes, keys without a time to live, and keys.
func TestLimiterFacts(t *testing.T) {
	t.Parallel()
	r := &results{
		plan: plan{tries: 1}, facts: map[string]facts{}, when: time.Now(), progress: t.Output(),
		contestants: slices.Concat(neaps(), peers(), tutorials()),
	}
	if err := testServer(t).limiterFacts(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	page := text(t, func(r *results) report { return report{sections: []section{r.conduct(), r.memory()}} }, r)
	has(t, page, map[string]string{
		"| neap bucket |":                    "| EVALSHA: 1 | EVALSHA: 1 | 1000 | no | no |",
		"| neap fast bucket |":               "| EVALSHA: 1 | – | – | – | no |",
		"| throttled |":                      "| TIME GET EVAL: 2 | TIME GET: 1 | 1000",
		"| httprate |":                       "| MGET MULTI EXEC: 2 | MGET: 1 |",
		"| tutorial GET/INCR/SETEX window |": "| GET INCR: 2 | GET: 1 |",
		"| tutorial HMGET/HMSET bucket |":    "| yes | yes |",
	})
	for name, keys := range map[string]float64{bucketName: 1, "neap set of two": 2, "tutorial HMGET/HMSET bucket": 1} {
		if f := r.facts[name]; f.keys != keys || f.bytes/keys < 40 || f.bytes/keys > 200 {
			t.Errorf("%s keeps %.0f bytes in %.0f keys", name, f.bytes, f.keys)
		}
	}
}

// Callers in several processes find what reads first and writes later, and find nothing in neap.
func TestContentionTellsExactFromRacy(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	const racy = "tutorial GET/INCR/SETEX window"
	i := slices.Index(namesOf(tutorials()), racy)
	if i < 0 {
		t.Fatalf("no contestant is called %q", racy)
	}
	var f, exact limiterFacts
	for tries := 0; f.most <= 1000; tries++ {
		if err := s.contend(t.Context(), tutorials()[i], 0, 1, &f); err != nil || tries == 20 {
			t.Fatalf("%s never admitted more than %d, %v", racy, f.most, err)
		}
	}
	neap := neaps()[0]
	if err := s.contend(t.Context(), neap, 1, 5, &exact); err != nil || exact.most < 1 || exact.most > 1000 {
		t.Errorf("%s admitted %d of a limit of 1000, %v", neap.name, exact.most, err)
	}
}
