package cache_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/neap-go/neap/core/limit/internal/cache"
	"github.com/neap-go/neap/internal/redistest"
)

// TestACacheIsAMap of what was used last, whatever is put, found, changed and removed.
func TestACacheIsAMap(t *testing.T) {
	t.Parallel()
	const most = 10 // one shard
	rng := redistest.Rand(t)
	c := cache.New[int](most)
	values := map[cache.Key]int{}
	var order []cache.Key // the last one was used last
	use := func(key cache.Key, kept bool) {
		order = slices.DeleteFunc(order, func(k cache.Key) bool { return k == key })
		if kept {
			order = append(order, key)
		}
	}
	for i := range 20_000 {
		key := cache.Key{Subject: fmt.Sprint(rng.IntN(4)), Of: fmt.Sprint(rng.IntN(5))}
		want, known := values[key]
		switch rng.IntN(5) {
		case 0:
			c.Put(key.Subject, key.Of, i)
			values[key] = i
			use(key, true)
			if len(order) > most {
				delete(values, order[0])
				order = order[1:]
			}
		case 1:
			got := c.Update(key.Subject, key.Of, func(was int, ok bool) (int, bool) {
				if was != want || ok != known {
					t.Errorf("Update of %v: got %d, %t, want %d, %t", key, was, ok, want, known)
				}
				return i, ok
			})
			if known {
				values[key] = i
				use(key, true)
			}
			if got != i {
				t.Errorf("Update of %v: got %d, want %d", key, got, i)
			}
		case 2:
			if got, ok := c.Remove(key.Subject, key.Of); got != want || ok != known {
				t.Errorf("Remove of %v: got %d, %t, want %d, %t", key, got, ok, want, known)
			}
			delete(values, key)
			use(key, false)
		default:
			if got, ok := c.Find(key.Subject, key.Of); got != want || ok != known {
				t.Errorf("Find of %v: got %d, %t, want %d, %t", key, got, ok, want, known)
			}
			if known && order[len(order)-1] != key { // the one found last is found without a lock
				use(key, true)
			}
		}
		if got := c.Subjects(); len(got) != len(values) {
			t.Fatalf("after %d steps: got %d entries, want %d", i+1, len(got), len(values))
		}
	}
	for subject := range 4 {
		var want []int
		for key, value := range values {
			if key.Subject == fmt.Sprint(subject) {
				want = append(want, value)
			}
		}
		got := c.Of(fmt.Sprint(subject))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the values of %d: got %v, want %v", subject, got, want)
		}
	}
}

// TestACacheIsBounded in subjects and in what is known of them, by many callers at once.
func TestACacheIsBounded(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 63, 64, 1000} {
		c := cache.New[string](most)
		var all sync.WaitGroup
		for caller := range 4 {
			all.Go(func() {
				for i := range 5000 {
					subject, of := fmt.Sprint(i%700), fmt.Sprint(i%3, caller%2)
					c.Put(subject, of, subject+of)
					if got, ok := c.Find(subject, of); ok && got != subject+of {
						t.Errorf("got the value of %q, want %q", got, subject+of)
					}
					c.Remove(subject, "2 0")
				}
			})
		}
		all.Wait()
		if n := len(c.Subjects()); n > most || n < most/2 {
			t.Errorf("with room for %d: got %d entries, want no more, and at least half of them", most, n)
		}
	}
}

// TestACacheHashes subjects that are no safe keys, so that each is short.
func TestACacheHashes(t *testing.T) {
	t.Parallel()
	c := cache.New[int](10)
	c.Put("a subject with spaces", "", 7)
	if got, ok := c.Find("a subject with spaces", ""); got != 7 || !ok {
		t.Errorf("a subject that is hashed: got %d, %t, want 7", got, ok)
	}
	if got := c.Subjects(); len(got) != 1 || len(got[0]) > 64+1 || got[0] == "a subject with spaces" {
		t.Errorf("got the subjects %q, want one that is hashed", got)
	}
}
