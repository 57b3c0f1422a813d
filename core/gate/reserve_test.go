package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// sale sells this many phones on a Redis that becomes unreachable on demand.
func sale(t testing.TB, units int64) (*stock.Stock, *severed) {
	t.Helper()
	rdb := severable(t)
	return opened(t, rdb, "", units), rdb
}

func opened(t testing.TB, rdb script.Client, prefix string, units int64) *stock.Stock {
	t.Helper()
	s, err := stock.New(storetest.At(t, rdb, prefix), "test", &stock.Options{Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(context.Background(), "phone", units, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return s
}

// counts fails the test unless this many phones are left, held and sold.
func counts(t testing.TB, s *stock.Stock, left, held, sold int64) {
	t.Helper()
	l, err := s.Left(context.Background(), "phone")
	if err != nil || l.Left != left || l.Held != held || l.Sold != sold {
		t.Errorf("got %+v, %v, want %d left, %d held and %d sold", l, err, left, held, sold)
	}
}

// buying is a buyer's request for an item.
func buying(item, buyer string) *request {
	r := with("X-Buyer", buyer)
	r.method, r.path, r.route, r.params = "POST", "/flash/"+item, "/flash/{item}", map[string]string{"item": item}
	return r
}

func reserving(s *stock.Stock, opts *gate.ReserveOptions) gate.Gate {
	return gate.Reserve(s, gate.ByParam("item"), gate.ByHeader("X-Buyer"), opts)
}

// A buyer has the unit while the handler runs; the handler's answer says whether
// the buyer keeps it.
func TestReserveConcludes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply *gate.Reply
		sold  int64
	}{
		"200": {answered(200), 1}, "201": {answered(201), 1}, "204": {answered(204), 1}, "303": {answered(303), 1},
		"399": {answered(399), 1}, "101": {answered(101), 1},
		"taken over": {&gate.Reply{Partial: true}, 1},
		"flushed":    {&gate.Reply{Status: 200, Partial: true}, 1},
		"400":        {answered(400), 0}, "409": {answered(409), 0}, "429": {answered(429), 0}, "500": {answered(500), 0},
		"a panic":      {nil, 0},
		"half a break": {&gate.Reply{Status: 500, Partial: true}, 0},
	} {
		for _, atOnce := range []bool{false, true} {
			s, _ := sale(t, 3)
			var h hook
			g := reserving(s, &gate.ReserveOptions{Confirm: atOnce, OnError: h.hear})
			p := g.Enter(buying("phone", "ann"))
			own, ok := stock.FromContext(p.Context)
			if status(p) != 200 || !ok || own.Confirmed() != atOnce || own.Item() != "phone" || own.Buyer() != "header:x-buyer=ann" {
				t.Fatalf("%s, at once %t: got %+v with the reservation %+v, "+
					"want it admitted, with one phone for ann", name, atOnce, p, own)
			}
			if atOnce {
				counts(t, s, 2, 0, 1)
			} else {
				counts(t, s, 2, 1, 0)
			}
			p.Leave(c.reply)
			counts(t, s, 3-c.sold, 0, c.sold)
			if err := h.take(); err != nil || !own.Concluded() {
				t.Errorf("%s, at once %t: the hook was told %v, concluded is %t, want nothing told and true",
					name, atOnce, err, own.Concluded())
			}
		}
	}
}

// A handler that confirms or cancels by itself is not overruled.
func TestReserveHandlerDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decide func(context.Context, *stock.Reservation) error
		reply  *gate.Reply
		sold   int64
	}{
		"confirms, and answers": {confirm, answered(201), 1},
		"confirms, and fails":   {confirm, answered(500), 1},
		"confirms, and panics":  {confirm, nil, 1},
		"cancels, and answers":  {cancel, answered(200), 0},
		"cancels, and fails":    {cancel, answered(500), 0},
		"decides on nothing":    {func(context.Context, *stock.Reservation) error { return nil }, answered(500), 0},
		"confirms, then cancels": {func(ctx context.Context, r *stock.Reservation) error {
			return errors.Join(confirm(ctx, r), cancel(ctx, r))
		}, answered(200), 0},
	} {
		for _, atOnce := range []bool{false, true} {
			s, _ := sale(t, 1)
			var h hook
			p := reserving(s, &gate.ReserveOptions{Confirm: atOnce, OnError: h.hear}).Enter(buying("phone", "ann"))
			own, _ := stock.FromContext(p.Context)
			if err := c.decide(p.Context, own); err != nil {
				t.Fatal(err)
			}
			p.Leave(c.reply)
			counts(t, s, 1-c.sold, 0, c.sold)
			if err := h.take(); err != nil {
				t.Errorf("%s, at once %t: the hook was told %v, want nothing", name, atOnce, err)
			}
		}
	}
}

func confirm(ctx context.Context, r *stock.Reservation) error { return r.Confirm(ctx) }
func cancel(ctx context.Context, r *stock.Reservation) error  { return r.Cancel(ctx) }

// A client that goes away stops neither Confirm nor Cancel. A handler that wrote no
// answer after that has given up.
func TestReserveClientGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply *gate.Reply
		sold  int64
	}{
		"done":       {answered(201), 1},
		"said so":    {&gate.Reply{Status: 200, Body: []byte("yours")}, 1},
		"streamed":   {&gate.Reply{Status: 200, Partial: true}, 1},
		"gave up":    {answered(200), 0},
		"failed":     {answered(503), 0},
		"panicked":   {nil, 0},
		"taken over": {&gate.Reply{Partial: true}, 1},
	} {
		for _, atOnce := range []bool{false, true} {
			s, _ := sale(t, 1)
			ctx, leave := context.WithCancel(context.WithValue(context.Background(), userKey(1), "alice"))
			r := buying("phone", "ann")
			r.ctx = ctx
			p := reserving(s, &gate.ReserveOptions{Confirm: atOnce}).Enter(r)
			leave()
			if p.Context.Err() == nil || p.Context.Value(userKey(1)) != "alice" {
				t.Errorf("%s: the handler's context is another than the request's, "+
					"want one with its end and its values", name)
			}
			p.Leave(c.reply)
			l, err := s.Left(context.Background(), "phone")
			if err != nil || l.Sold != c.sold || l.Held != 0 {
				t.Errorf("%s, at once %t: got %+v, %v, want %d sold and none held", name, atOnce, l, err, c.sold)
			}
		}
	}
}

func TestReserveAnswers(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom secret-key-name")
	gone, leave := context.WithCancel(context.Background())
	leave()
	byItem, byBuyer, byID := gate.ByParam("item"), gate.ByHeader("X-Buyer"), gate.ByHeader("X-Order")
	quantity := func(n int64, err error) *gate.ReserveOptions {
		return &gate.ReserveOptions{Quantity: func(gate.Request) (int64, error) { return n, err }}
	}
	doubled := buying("phone", "cid")
	doubled.header["X-Buyer"] = []string{"cid", "cid"}
	dropped := buying("phone", "cid")
	dropped.ctx = gone
	for name, c := range map[string]struct {
		item, buyer gate.Key
		opts        *gate.ReserveOptions
		r           *request
		away        bool
		status      int
		kind        string
		hook        error // nil: not told
	}{
		"there is one":      {byItem, byBuyer, nil, buying("phone", "cid"), false, 200, "", nil},
		"sold out":          {byItem, byBuyer, nil, buying("tea", "cid"), false, 409, "sold-out", nil},
		"not as many":       {byItem, byBuyer, quantity(3, nil), buying("phone", "cid"), false, 409, "sold-out", nil},
		"as many":           {byItem, byBuyer, quantity(2, nil), buying("phone", "cid"), false, 200, "", nil},
		"has one":           {byItem, byBuyer, nil, buying("phone", "ann"), false, 409, "already-yours", nil},
		"has the last":      {byItem, byBuyer, nil, buying("tea", "ann"), false, 409, "already-yours", nil},
		"not opened":        {byItem, byBuyer, nil, buying("car", "ann"), false, 404, "unknown-item", nil},
		"edited":            {byItem, byBuyer, nil, buying("torn", "ann"), false, 500, "", stock.ErrDisagrees},
		"no buyer":          {byItem, byBuyer, nil, &request{route: "/flash/{item}", params: map[string]string{"item": "phone"}}, false, 400, "", nil},
		"two buyers":        {byItem, byBuyer, nil, doubled, false, 400, "", nil},
		"no route":          {byItem, byBuyer, nil, with("X-Buyer", "cid"), false, 500, "", gate.ErrWiring},
		"no id":             {byItem, byBuyer, &gate.ReserveOptions{ID: byID}, buying("phone", "cid"), false, 400, "", nil},
		"an empty item":     {fixed("key:item="), byBuyer, nil, buying("phone", "cid"), false, 500, "", gate.ErrWiring},
		"the item fails":    {failing(boom), byBuyer, nil, buying("phone", "cid"), false, 500, "", boom},
		"the buyer fails":   {byItem, failing(boom), nil, buying("phone", "cid"), false, 500, "", boom},
		"who buys unsaid":   {byItem, failing(gate.Refuse(401, "Sign in")), nil, buying("phone", "cid"), false, 401, "", nil},
		"none wanted":       {byItem, byBuyer, quantity(0, nil), buying("phone", "cid"), false, 400, "", nil},
		"less wanted":       {byItem, byBuyer, quantity(-1, nil), buying("phone", "cid"), false, 400, "", nil},
		"too many wanted":   {byItem, byBuyer, quantity(stock.MaxUnits+1, nil), buying("phone", "cid"), false, 400, "", nil},
		"quantity refused":  {byItem, byBuyer, quantity(1, gate.Refuse(422, "No")), buying("phone", "cid"), false, 422, "", nil},
		"quantity fails":    {byItem, byBuyer, quantity(1, boom), buying("phone", "cid"), false, 500, "", boom},
		"Redis is away":     {byItem, byBuyer, nil, buying("phone", "cid"), true, 503, "not-reserved", script.ErrConfiguration},
		"the client's gone": {byItem, byBuyer, nil, dropped, false, 503, "not-reserved", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, rdb := sale(t, 3)
			for _, item := range []string{"tea", "torn"} {
				if _, err := s.Open(t.Context(), item, 1, time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			for _, item := range []string{"phone", "tea"} {
				if _, err := s.Reserve(t.Context(), item, "header:x-buyer=ann", "order", nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := rdb.Process(t.Context(), redis.NewIntCmd(t.Context(), "hset", "neap:stock:test:{torn}", "left", "5")); err != nil {
				t.Fatal(err)
			}
			rdb.gone.Store(c.away)
			var h hook
			opts := gate.ReserveOptions{}
			if c.opts != nil {
				opts = *c.opts
			}
			opts.OnError = h.hear
			p := gate.Reserve(s, c.item, c.buyer, &opts).Enter(c.r)
			if status(p) != c.status {
				t.Fatalf("got %d, want %d", status(p), c.status)
			}
			if told := h.take(); (told == nil) != (c.hook == nil) || c.hook != nil && !errors.Is(told, c.hook) {
				t.Errorf("the hook was told %v, want %v", told, c.hook)
			}
			if p.Reply == nil {
				return
			}
			body := string(p.Reply.Body)
			if strings.Contains(body, `"type":"`+gate.TypeStock+c.kind+`"`) != (c.kind != "") || strings.Contains(body, "boom") ||
				single(t, p.Reply.Header, "Cache-Control") != "no-store" || p.Leave != nil || p.Context != nil {
				t.Errorf("got %+v, want the type %q, Cache-Control: no-store, and nothing of the error's text",
					p, c.kind)
			}
			if again := lines(p.Reply.Header, "Retry-After"); (again != nil) != (c.status == 503) {
				t.Errorf("got Retry-After %q, want it with 503 and not otherwise", again)
			}
		})
	}
}

// A repetition under the same ID runs. If it fails, it takes nothing from the first
// request, which succeeded.
func TestReserveUnderAnID(t *testing.T) {
	t.Parallel()
	s, _ := sale(t, 2)
	var units int64 = 1
	g := reserving(s, &gate.ReserveOptions{
		ID:       gate.ByHeader("X-Order"),
		Quantity: func(gate.Request) (int64, error) { return units, nil },
	})
	ask := func(order string) gate.Pass {
		r := buying("phone", "ann")
		r.header["X-Order"] = []string{order}
		return g.Enter(r)
	}
	first := ask("17")
	again := ask("17")
	if own, _ := stock.FromContext(again.Context); status(first) != 200 || status(again) != 200 || !own.Again() {
		t.Fatalf("got %+v and %+v, want both admitted, the second as a repetition", first, again)
	}
	first.Leave(answered(201))
	again.Leave(answered(500))
	counts(t, s, 1, 0, 1)
	if p := ask("18"); status(p) != 409 || !strings.Contains(string(p.Reply.Body), "#already-yours") {
		t.Errorf("another id: got %+v, want 409 already-yours", p.Reply)
	}
	units = 2
	if p := ask("17"); status(p) != 422 || !strings.Contains(string(p.Reply.Body), "#another-quantity") {
		t.Errorf("another quantity: got %+v, want 422 another-quantity", p.Reply)
	}
	counts(t, s, 1, 0, 1)
}

// TestReserveEightRequestsWithOneID: of concurrent requests with one ID, whose handlers
// fail, eight run and the others are refused. Then each unit is back, and the ID can be
// used again.
func TestReserveEightRequestsWithOneID(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for _, confirm := range []bool{true, false} {
			for _, requests := range []int{8, 9, 50} {
				s := opened(t, rdb, fmt.Sprintf("%s-%d-%t", prefix, requests, confirm), 5)
				g := reserving(s, &gate.ReserveOptions{Confirm: confirm, ID: gate.ByHeader("X-Order")})
				ask := func() gate.Pass {
					r := buying("phone", "ann")
					r.header["X-Order"] = []string{"17"}
					return g.Enter(r)
				}
				for round := range 2 {
					var mu sync.Mutex
					var running []gate.Pass
					var all sync.WaitGroup
					for range requests {
						all.Go(func() {
							p := ask()
							mu.Lock()
							defer mu.Unlock()
							switch {
							case p.Reply == nil:
								running = append(running, p)
							case p.Reply.Status != 409 || !strings.Contains(string(p.Reply.Body), "#too-many-calls"):
								t.Errorf("got %d %s, want 409 too-many-calls", p.Reply.Status, p.Reply.Body)
							}
						})
					}
					all.Wait()
					if len(running) != 8 {
						t.Errorf("%d of %d requests run, want 8", len(running), requests)
					}
					for _, p := range running {
						all.Go(func() { p.Leave(answered(402)) })
					}
					all.Wait()
					if l, err := s.Left(t.Context(), "phone"); err != nil || l.Left != 5 || l.Sold != 0 || l.Held != 0 {
						t.Errorf("round %d of %d requests, at once %t: got %+v, %v, want all 5 left", round, requests, confirm, l, err)
					}
				}
				p := ask()
				p.Leave(answered(201))
				counts(t, s, 4, 0, 1)
			}
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// A request that a gate further in refuses has sold nothing, whatever the refusal looks
// like.
func TestReserveRefusedInside(t *testing.T) {
	t.Parallel()
	for name, render := range map[string]func(gate.Denial) gate.Reply{
		"as it is":          nil,
		"as if it was fine": func(gate.Denial) gate.Reply { return gate.Reply{Status: 200, Body: []byte(`{"code":7}`)} },
	} {
		s, _ := sale(t, 1)
		inner := gate.RateLimit(hourly(t, 1), failing(gate.Refuse(403, "No")), &gate.RateLimitOptions{Render: render})
		p := gate.Chain(reserving(s, nil), inner).Enter(buying("phone", "ann"))
		if p.Reply == nil {
			t.Fatalf("%s: got %+v, want the inner gate's reply", name, p)
		}
		counts(t, s, 1, 0, 0)

		// The handler asks for something else, is refused, and answers by itself.
		p = reserving(s, nil).Enter(buying("phone", "ann"))
		refusal := inner.Enter(&request{ctx: p.Context}).Reply.Sent()
		refusal.Status, refusal.Refused = 200, false
		p.Leave(&refusal)
		counts(t, s, 0, 0, 1)
	}
	s, _ := sale(t, 1)
	panics(t, func() {
		gate.Chain(reserving(s, nil), gate.RateLimit(hourly(t, 1), func(gate.Request) (string, error) { panic("mine") }, nil)).
			Enter(buying("phone", "ann"))
	})
	counts(t, s, 1, 0, 0)
}

// A success that comes after the lease has ended gets its unit if there is one. Otherwise
// the hook is told.
func TestReserveConfirmsLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resold bool
		want   error
	}{"there are units": {false, nil}, "it was resold": {true, stock.ErrLapsed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := severable(t)
			s, err := stock.New(rdb, "test", &stock.Options{Budget: time.Minute, Lease: 6 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(t.Context(), "phone", 1, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			var told error
			var of string
			p := reserving(s, &gate.ReserveOptions{OnError: func(r gate.Request, err error) {
				own, _ := stock.FromContext(r.Context())
				told, of = err, r.Path()+" "+own.Buyer()
			}}).Enter(buying("phone", "ann"))
			own, _ := stock.FromContext(p.Context)
			rdb.gone.Store(true)
			redistest.Await(t, time.Minute, "the end of the lease", func() bool { return errors.Is(own.Err(), stock.ErrLapsed) })
			rdb.gone.Store(false)
			if c.resold {
				redistest.Await(t, time.Minute, "the unit to be back", func() bool {
					_, err := s.Reserve(t.Context(), "phone", "bob", "order", &stock.ReserveOptions{Confirm: true})
					return err == nil
				})
			}
			p.Leave(answered(201))
			if !errors.Is(told, c.want) || c.want != nil && of != "/flash/phone header:x-buyer=ann" {
				t.Errorf("the hook was told %v of %q, want %v", told, of, c.want)
			}
			counts(t, s, 0, 0, 1)
		})
	}
}

// A handler that takes many leases keeps its unit.
func TestReserveRenews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		rdb := redistest.BubbleClient(t, m)
		s := opened(t, rdb, "", 1)
		p := reserving(s, nil).Enter(buying("phone", "ann"))
		own, _ := stock.FromContext(p.Context)
		time.Sleep(10 * s.Lease())
		if err := own.Err(); err != nil {
			t.Errorf("while the handler runs: the reservation has the error %v, want none", err)
		}
		counts(t, s, 0, 1, 0)
		p.Leave(answered(500))
		counts(t, s, 1, 0, 0)
	})
}

// If Redis does not confirm, the hook is told, and the call is repeated when Redis is
// back.
func TestReserveGoesOnInTheBackground(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply *gate.Reply
		sold  int64
	}{"a success": {answered(201), 1}, "a failure": {answered(500), 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, rdb := sale(t, 1)
			var h hook
			p := reserving(s, &gate.ReserveOptions{OnError: h.hear}).Enter(buying("phone", "ann"))
			rdb.gone.Store(true)
			p.Leave(c.reply)
			if err := h.take(); !errors.Is(err, script.ErrConfiguration) {
				t.Errorf("the hook was told %v, want %v", err, script.ErrConfiguration)
			}
			rdb.gone.Store(false)
			redistest.Await(t, time.Minute, "the rest", func() bool { return s.Stats().Concluding == 0 })
			counts(t, s, 1-c.sold, 0, c.sold)
		})
	}
}

// TestReserveTellsHowTheBackgroundEnds: what goes on when Leave has returned may fail, and
// then the hook is told once more.
func TestReserveTellsHowTheBackgroundEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status    int
		cut       string
		meanwhile func(t *testing.T, rdb *redistest.CutClient, other *stock.Stock)
		want      []error
		sold      int64
	}{
		"it goes on": {201, "refused", nil, []error{script.ErrMaybeExecuted}, 1},
		"it was resold": {201, "refused", func(t *testing.T, _ *redistest.CutClient, other *stock.Stock) {
			t.Helper()
			if _, err := other.Reserve(t.Context(), "phone", "bob", "order", &stock.ReserveOptions{Confirm: true}); err != nil {
				t.Error(err)
			}
		}, []error{script.ErrMaybeExecuted, stock.ErrLapsed}, 1},
		"the item disagrees":                {201, "refused", edited, []error{script.ErrMaybeExecuted, stock.ErrDisagrees}, 0},
		"a failure, and the item disagrees": {500, "refused", edited, []error{script.ErrMaybeExecuted, stock.ErrDisagrees}, 0},
		"it is given up": {201, "forbidden", func(t *testing.T, _ *redistest.CutClient, other *stock.Stock) {
			t.Helper()
			time.Sleep(10 * other.Lease())
		}, []error{script.ErrConfiguration, stock.ErrDropped}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
				s, other := opened(t, rdb, "neap", 1), opened(t, rdb.Client, "neap", 1)
				var mu sync.Mutex
				var told []error
				p := reserving(s, &gate.ReserveOptions{OnError: func(r gate.Request, err error) {
					mu.Lock()
					defer mu.Unlock()
					if own, ok := stock.FromContext(r.Context()); !ok || own.Buyer() != "header:x-buyer=ann" {
						t.Errorf("the hook was told of %+v, want ann's request", own)
					}
					told = append(told, err)
				}}).Enter(buying("phone", "ann"))
				rdb.Cut(c.cut)
				time.Sleep(2 * s.Lease())
				p.Leave(answered(c.status))
				if c.meanwhile != nil {
					c.meanwhile(t, rdb, other)
				}
				rdb.Mend()
				time.Sleep(2 * s.Lease())
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if !slices.EqualFunc(told, c.want, errors.Is) || s.Stats().Concluding != 0 {
					t.Errorf("the hook was told %v, %d go on, want %v and none", told, s.Stats().Concluding, c.want)
				}
				if l, err := other.Left(t.Context(), "phone"); err == nil && (l.Left != 1-c.sold || l.Sold != c.sold) {
					t.Errorf("got %+v, want %d sold", l, c.sold)
				}
			})
		})
	}
}

// TestReserveTellsInOrder: the hook is told that a Confirm goes on before it is told how that
// has ended, even if it takes its time.
func TestReserveTellsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
		s := opened(t, rdb, "neap", 1)
		var h hook
		p := reserving(s, &gate.ReserveOptions{OnError: func(r gate.Request, err error) {
			if errors.Is(err, script.ErrMaybeExecuted) {
				rdb.Mend()
				time.Sleep(s.Lease())
			}
			h.hear(r, err)
		}}).Enter(buying("phone", "ann"))
		edited(t, rdb, s)
		rdb.Cut("refused")
		p.Leave(answered(201))
		synctest.Wait()
		if want := []error{script.ErrMaybeExecuted, stock.ErrDisagrees}; !slices.EqualFunc(h.errs, want, errors.Is) {
			t.Errorf("the hook was told %v, want %v", h.errs, want)
		}
	})
}

// TestReserveRenewsNothingAfterAFailure: units that the gate could not confirm are back when
// their lease ends, because no handler runs any more.
func TestReserveRenewsNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"", "refused"} { // Confirm fails, or what goes on in the background
		synctest.Test(t, func(t *testing.T) {
			rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
			s := opened(t, rdb, "neap", 1)
			p := reserving(s, nil).Enter(buying("phone", "ann"))
			edited(t, rdb, s)
			if cut != "" {
				rdb.Cut(cut)
			}
			p.Leave(answered(201))
			rdb.Mend()
			time.Sleep(s.Lease() / 2)
			if err := rdb.HSet(t.Context(), "neap:stock:test:{phone}", "left", 0).Err(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * s.Lease())
			counts(t, s, 1, 0, 0)
			if n := s.Stats(); n.Holding != 0 || n.Lapsed != 1 {
				t.Errorf("got stats %+v, want none held, and one lapsed", n)
			}
		})
	}
}

// TestReserveRenewsNothingAfterAnExit: a hook of the client ends the goroutine that confirms.
func TestReserveRenewsNothingAfterAnExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.BubbleClient(t, redistest.Bubble(t))
		hook := &redistest.ExitHook{}
		rdb.AddHook(hook)
		s := opened(t, storetest.Direct(t, rdb, ""), "", 1)
		p := reserving(s, nil).Enter(buying("phone", "ann"))
		hook.Armed.Store(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Leave(answered(201))
		}()
		<-done
		if hook.Armed.Load() {
			t.Error("got no call that the hook ended, want one")
		}
		time.Sleep(10 * s.Lease())
		counts(t, s, 1, 0, 0)
	})
}

// edited has the counts of an item disagree.
func edited(t *testing.T, rdb *redistest.CutClient, _ *stock.Stock) {
	t.Helper()
	if err := rdb.HSet(t.Context(), "neap:stock:test:{phone}", "left", 9).Err(); err != nil {
		t.Error(err)
	}
}

func TestReserveOptions(t *testing.T) {
	t.Parallel()
	s, _ := sale(t, 1)
	opts := &gate.ReserveOptions{
		Skip: func(r gate.Request) bool { return r.Path() == "/healthz" },
		Render: func(d gate.Denial) gate.Reply {
			if d.Status != 409 || d.Type != gate.TypeStock+"sold-out" || d.RetryAfter != 0 || d.Decision != nil {
				t.Errorf("got the denial %+v, want 409 sold-out with neither a decision nor a time to retry", d)
			}
			return gate.Reply{Body: []byte("gone")}
		},
	}
	g := reserving(s, opts)
	*opts = gate.ReserveOptions{}
	if p := g.Enter(&request{path: "/healthz"}); p.Reply != nil || p.Leave != nil || p.Context != nil {
		t.Errorf("a skipped request: got %+v, want neither a reply nor a Leave nor a context", p)
	}
	if p := g.Enter(buying("phone", "ann")); status(p) != 200 {
		t.Errorf("the first buyer: got %+v, want it admitted", p.Reply)
	}
	if p := g.Enter(buying("phone", "bob")); status(p) != 409 || string(p.Reply.Body) != "gone" {
		t.Errorf("the second buyer: got %+v, want 409 with the body gone", p.Reply)
	}
}

// Of many concurrent requests, in several processes, as many succeed as there are units,
// and no buyer gets two.
func TestReserveNeverOversells(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const units, buyers, processes = 10, 40, 3
		var stocks []*stock.Stock
		for range processes {
			stocks = append(stocks, opened(t, rdb, prefix, units))
		}
		var sold, failed atomic.Int64
		var had sync.Map
		var wg sync.WaitGroup
		for n := range 4 * buyers {
			buyer := "b" + string(rune('A'+n%buyers))
			g := reserving(stocks[n%processes], &gate.ReserveOptions{Confirm: n%2 == 0})
			wg.Go(func() {
				p := g.Enter(buying("phone", buyer))
				switch {
				case p.Reply != nil:
					if status(p) != 409 {
						t.Errorf("got %d, want 409", status(p))
					}
				case n%5 == 0:
					failed.Add(1)
					p.Leave(answered(500))
				default:
					sold.Add(1)
					if _, twice := had.LoadOrStore(buyer, true); twice {
						t.Errorf("%s has two, want one at most", buyer)
					}
					p.Leave(answered(201))
				}
			})
		}
		wg.Wait()
		if sold.Load() > units {
			t.Errorf("%d were sold, want %d at most", sold.Load(), units)
		}
		counts(t, stocks[0], units-sold.Load(), 0, sold.Load())
	})
}

func TestReservePanics(t *testing.T) {
	t.Parallel()
	s, _ := sale(t, 1)
	for name, wire := range map[string]func(){
		"no stock": func() { gate.Reserve(nil, everyone, everyone, nil) },
		"no item":  func() { gate.Reserve(s, nil, everyone, nil) },
		"no buyer": func() { gate.Reserve(s, everyone, nil, nil) },
		"both":     func() { gate.Reserve(s, everyone, everyone, &gate.ReserveOptions{Keep: true, Confirm: true}) },
	} {
		if v, ok := panics(t, wire).(string); !ok || !strings.HasPrefix(v, "gate.Reserve: ") {
			t.Errorf("%s: got the panic %v, want one that begins with gate.Reserve", name, v)
		}
	}
}

// An item has the name that was given to Open, whichever key names it. Only ByValue keeps
// its name in front.
func TestReserveItems(t *testing.T) {
	t.Parallel()
	const item = "a=b:c"
	r := buying(item, "ann")
	r.query, r.header["X-Item"] = "item=a%3Db:c", []string{item}
	r.values = map[any]any{userKey(1): item}
	for name, c := range map[string]struct {
		key  gate.Key
		item string
	}{
		"param": {gate.ByParam("item"), item}, "query": {gate.ByQuery("item"), item}, "header": {gate.ByHeader("X-Item"), item},
		"one's own": {fixed(item), item}, "tagged": {gate.Tag("a=item", fixed(item)), item},
		"the first": {gate.FirstOf(gate.ByHeader("X-Other"), gate.ByQuery("item")), item},
		"value":     {gate.ByValue("article", userKey(1)), "article=" + item},
	} {
		s, _ := sale(t, 1)
		if _, err := s.Open(t.Context(), c.item, 1, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		p := gate.Reserve(s, c.key, everyone, nil).Enter(r)
		if own, ok := stock.FromContext(p.Context); !ok || own.Item() != c.item {
			t.Errorf("%s: got %+v, want %q reserved", name, p.Reply, c.item)
		}
	}
}
