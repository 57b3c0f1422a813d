package main

import (
	"slices"
	"testing"

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

func TestContestantsAdmitTheirLimitAndDenyBeyond(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	for db, c := range contestants() {
		if c.kind == floor {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := c.open(t.Context(), env{s.addr, db}, few)
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			for _, key := range []string{"ip=192.0.2.1", "ip=192.0.2.2"} {
				limit := int(few.quota(c.algorithm).limit)
				for n := 1; n <= limit+2; n++ {
					allowed, err := l.take(t.Context(), key)
					if err != nil {
						t.Fatal(err)
					}
					if want := n <= limit; allowed != want && (want || !c.refills) {
						t.Errorf("request %d of %s: allowed is %t, and the limit is %d", n, key, allowed, limit)
					}
				}
			}
		})
	}
}

// Each has a name and a database of its own, and a database is left for each.
func TestContestantsKeepApart(t *testing.T) {
	t.Parallel()
	all := contestants()
	if len(all) > databases {
		t.Fatalf("%d contestants on %d databases", len(all), databases)
	}
	if all[0].name != floorName {
		t.Errorf("the first is %s", all[0].name)
	}
	names := map[string]bool{}
	for _, c := range all {
		if names[c.name] {
			t.Errorf("two are called %s", c.name)
		}
		names[c.name] = true
		if c.twin != "" && !slices.ContainsFunc(all, func(o contestant) bool { return o.name == c.twin && o.algorithm == c.algorithm }) {
			t.Errorf("%s is the twin of %q", c.name, c.twin)
		}
	}
}
