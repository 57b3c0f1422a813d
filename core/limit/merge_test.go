package limit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/call"
	batches "github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/internal/redistest"
)

// gathered is a transport that holds calls back until enough are there. Then it sends them
// merged, in the order in which they came.
type gathered struct {
	rdb    redis.UniversalClient
	most   int // keys of a merged call
	merger wire.Merger
	sent   int // commands in the place of the calls

	mu    sync.Mutex
	calls []*wire.Command // that are held back; nil while none are
	came  chan struct{}
	ended chan struct{}
}

func (s *gathered) Do(ctx context.Context, c batches.Call) error {
	cmd := c.(*wire.Command)
	s.mu.Lock()
	if s.ended == nil { // another attempt
		s.mu.Unlock()
		_ = s.rdb.Process(ctx, cmd)
		return nil
	}
	s.calls = append(s.calls, cmd)
	ended := s.ended
	s.mu.Unlock()
	s.came <- struct{}{}
	<-ended
	return nil
}

// question is one call of a group.
type question struct {
	key  string
	cost int64
}

// answer is what a script answers to a question.
type answer struct {
	reply any
	err   error
}

// ask asks all questions at once.
func (s *gathered) ask(t *testing.T, r rule, all []question) []answer {
	t.Helper()
	client := must(call.NewClient(s.rdb))(t)
	s.came, s.ended = make(chan struct{}), make(chan struct{})
	answers := make([]answer, len(all))
	var wg sync.WaitGroup
	for i, q := range all {
		wg.Go(func() { answers[i] = single(t, client, s, r, q) })
		<-s.came
	}
	s.mu.Lock()
	calls, ended := s.calls, s.ended
	s.calls, s.ended = nil, nil
	s.mu.Unlock()
	s.sent = 0
	for out := s.merger.Merge(t.Context(), calls, s.most); len(out) > 0; {
		s.sent += len(out)
		pipe := s.rdb.Pipeline()
		for _, cmd := range out {
			_ = pipe.Process(t.Context(), cmd)
		}
		_, _ = pipe.Exec(t.Context())
		out, s.most = s.merger.Deliver(t.Context(), s.most)
	}
	close(ended)
	wg.Wait()
	return answers
}

// single asks one question. by is nil if it goes by itself.
func single(t *testing.T, client *call.Client, by call.Transport, r rule, q question) answer {
	c := new(call.Call)
	must(0, c.Set((*wire.Script)(r.alone()), []string{q.key}, r.args(q.cost)))(t)
	err := client.Do(t.Context(), c, time.Minute, by)
	return answer{c.Reply(), err}
}

func (a answer) read(r rule) (reading, bool) {
	n, is := a.reply.(int64)
	if !is {
		return reading{}, false
	}
	return r.unpack(n)
}

// randomGroup returns questions about few keys, many of them alike.
func randomGroup(rng *rand.Rand, capacity int64, prefix string) []question {
	var group []question
	keys, questions := 1+rng.IntN(4), 1+rng.IntN(4)
	if rng.IntN(20) == 0 {
		keys, questions = 1+rng.IntN(40), 40 // more than a merged call has
	}
	for range questions {
		q := question{fmt.Sprintf("%s{%d}", prefix, rng.IntN(keys)), randomCost(rng, capacity)}
		for range 1 + rng.IntN(3) {
			group = append(group, q)
		}
	}
	return group
}

// disturb changes what a key holds, as refunds, other scripts and operators may.
func disturb(rng *rand.Rand, m *miniredis.Miniredis, key, twin string) {
	value, err := m.Get(key)
	if err != nil {
		return
	}
	left := m.TTL(key)
	switch rng.IntN(8) {
	case 0: // without a time to live
		left = 0
	case 1:
		left *= 3
	case 2:
		value = "no number"
	case 3:
		value = "0"
	case 4:
		left = left/2 + time.Millisecond
	default:
		return
	}
	left = left.Truncate(time.Millisecond) // as a server's keys have it
	for _, k := range []string{key, twin} {
		_ = m.Set(k, value)
		if left > 0 {
			m.SetTTL(k, left)
		}
	}
}

// TestMergedEqualsSequential asks groups of questions merged. It asks the same questions
// of twin keys one after the other, on a clock that does not move meanwhile. Answers and
// states are the same.
func TestMergedEqualsSequential(t *testing.T) {
	t.Parallel()
	const perPolicy = 25
	for _, k := range []kind{kindBucket, kindFast, kindWindow, kindSliding} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			m, rdb := newServer(t)
			rng := redistest.Rand(t)
			merged := &gathered{rdb: rdb, most: 16}
			sequential := must(call.NewClient(rdb))(t)
			asked, sent := 0, 0
			for i := range max(redistest.Steps(100_000)/10/perPolicy, 1) { // a step has some ten questions
				p := randomPolicy(rng, k)
				if i < len(notable[k]) {
					p = notable[k][i]
				}
				r, err := p.compile()
				if err != nil || r.alone() == nil {
					continue
				}
				c := newClocked(t, m, rdb, "m", p)
				a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
				last := State{Window: time.Second}
				for range perPolicy {
					c.pause(randomPause(rng, &last, max(grain(r), time.Microsecond)))
					group := randomGroup(rng, r.id().limit, a)
					held := map[string]string{}
					for _, q := range group {
						value, _ := m.Get(q.key)
						held[q.key] = fmt.Sprintf("%q for %v", value, m.TTL(q.key))
					}
					got := merged.ask(t, r, group)
					asked, sent = asked+len(group), sent+merged.sent
					for i, q := range group {
						twin := question{b + q.key[len(a):], q.cost}
						want := single(t, sequential, nil, r, twin)
						if got[i].reply != want.reply || (got[i].err == nil) != (want.err == nil) {
							t.Fatalf("%+v, question %d of %v, for %s: got %v, want %v", p, i, group, held[q.key], got[i], want)
						}
						if reading, ok := want.read(r); ok {
							last = r.state(reading, q.cost)
						}
					}
					for _, q := range group {
						twin := b + q.key[len(a):]
						value, _ := m.Get(q.key)
						other, _ := m.Get(twin)
						if value != other || m.TTL(q.key) != m.TTL(twin) {
							t.Fatalf("%+v, %s after %v: got %q for %v, want %q for %v as if asked one after the other",
								p, q.key, group, value, m.TTL(q.key), other, m.TTL(twin))
						}
						disturb(rng, m, q.key, twin)
					}
				}
			}
			if asked == 0 || sent*2 > asked {
				t.Errorf("%d questions: got %d commands, want at most half as many", asked, sent)
			}
		})
	}
}

// TestMergedCountsNothingElse: a merged call leaves alone what no script wrote, and the
// script of one request decides.
func TestMergedCountsNothingElse(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb := srv.Client(t)
	r := must(FixedWindow{Limit: 10, Window: time.Hour}.compile())(t)
	for held, want := range map[string]struct {
		granted int
		left    string
	}{"9.5": {0, "9.5"}, "-3": {13, "10"}} {
		key := srv.Prefix(t) + "{" + held + "}"
		if err := rdb.Set(t.Context(), key, held, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		granted := 0
		merged := &gathered{rdb: rdb, most: 16}
		for i, a := range merged.ask(t, r, slices.Repeat([]question{{key, 1}}, 30)) {
			if reading, ok := a.read(r); !ok {
				t.Fatalf("%s, request %d: got %v, want a decision", held, i, a)
			} else if !reading.denied {
				granted++
			}
		}
		if left := rdb.Get(t.Context(), key).Val(); granted != want.granted || left != want.left {
			t.Errorf("%s: got %d granted and %s in the key, want %d and %s", held, granted, left, want.granted, want.left)
		}
	}
}

// TestMergedOnServers counts on real servers, with keys of many slots. Exactly the limit
// is admitted.
func TestMergedOnServers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const limit, keys = 100, 20
		for _, p := range []Policy{
			TokenBucket{Rate: 1, Per: time.Hour, Burst: limit}, TokenBucket{Rate: 1001, Per: time.Second, Burst: limit},
			FixedWindow{Limit: limit, Window: time.Hour}, SlidingWindow{Limit: limit, Window: time.Hour},
		} {
			r := must(p.compile())(t)
			merged := &gathered{rdb: rdb, most: 16} // which a cluster refuses
			var group []question
			for i := range keys {
				key := fmt.Sprintf("%s%s{%d}", prefix, p.PolicyName(), i)
				for n := range limit + 20 {
					group = append(group, question{key, 1 + int64(n%2)})
				}
			}
			slices.SortStableFunc(group, func(a, b question) int { return int(a.cost - b.cost) })
			granted, began := map[string]int64{}, time.Now()
			for i, a := range merged.ask(t, r, group) {
				if a.err != nil {
					t.Fatalf("%+v, question %d: got %v, want a decision", p, i, a.err)
				}
				if reading, ok := a.read(r); ok && !reading.denied {
					granted[group[i].key] += group[i].cost
				}
			}
			for key, n := range granted {
				most := int64(limit)
				if b, is := r.(*bucket); is && b.fast { // it refills while it is asked
					most += 1 + int64(1001*time.Since(began).Seconds())
				}
				if n < limit || n > most {
					t.Errorf("%+v, %s: got %d permits granted, want %d to %d", p, key, n, limit, most)
				}
			}
			if len(granted) != keys {
				t.Errorf("%+v: got grants for %d keys, want %d", p, len(granted), keys)
			}
			if merged.most > 1 && merged.sent > 2*keys {
				t.Errorf("%+v: got %d commands for %d questions, want %d at most", p, merged.sent, len(group), 2*keys)
			}
		}
	})
}
