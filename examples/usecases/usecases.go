// Package usecases holds the code that the recipes of docs/recipes.md show.
package usecases

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"expvar"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/ginlimit"
)

// Frameworks mounts one gate on the other three.
func Frameworks(limiter *limit.Limiter, r *gin.Engine, e *echo.Echo, app *fiber.App) {
	hello := struct {
		gin   gin.HandlerFunc
		echo  echo.HandlerFunc
		fiber fiber.Handler
	}{
		func(c *gin.Context) { c.String(200, "hello\n") },
		func(c echo.Context) error { return c.String(200, "hello\n") },
		func(c *fiber.Ctx) error { return c.SendString("hello\n") },
	}

	perIP := gate.RateLimit(limiter, gate.ByIP(nil), nil)
	r.GET("/hello", ginlimit.Middleware(perIP), hello.gin)
	e.GET("/hello", hello.echo, echolimit.Middleware(perIP))
	app.Get("/hello", fiberlimit.Middleware(perIP), hello.fiber)
}

// BehindProxy takes the client's address from X-Forwarded-For if the load balancers
// of one network have sent the request.
func BehindProxy(limiter *limit.Limiter) gate.Gate {
	perIP := gate.ByIP(&gate.IPOptions{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	return gate.RateLimit(limiter, perIP, nil)
}

// ByAPIKey limits a caller by the key it sends, or else by its address.
func ByAPIKey(limiter *limit.Limiter) gate.Gate {
	caller := gate.FirstOf(gate.ByHeader("X-Api-Key"), gate.ByIP(nil))
	return gate.RateLimit(limiter, caller, nil)
}

// Tenant is what authentication stores in the request's context.
type Tenant struct {
	ID   string
	Rate int64 // requests a second, by its plan
}

func (t Tenant) String() string { return t.ID }

type tenantKey struct{}

// ByPlan gives each tenant the numbers of its plan.
func ByPlan(free *limit.Limiter) gate.Gate {
	return gate.RateLimit(free, gate.ByValue("tenant", tenantKey{}), &gate.RateLimitOptions{
		Policies: func(r gate.Request) ([]limit.Policy, error) {
			tenant, ok := r.Value(tenantKey{}).(Tenant)
			if !ok || tenant.Rate == 0 {
				return nil, nil // free's own
			}
			return []limit.Policy{limit.TokenBucket{Name: "plan", Rate: tenant.Rate, Per: time.Second}}, nil
		},
	})
}

// Several enforces two limits on the same subject, all or nothing.
func Several(rdb script.Client) (*limit.Limiter, error) {
	return limit.New(rdb, "api", []limit.Policy{
		limit.TokenBucket{Name: "burst", Rate: 10, Per: time.Second, Burst: 20},
		limit.FixedWindow{Name: "daily", Limit: 10_000, Window: 24 * time.Hour},
	}, nil)
}

// ThreeLevels limit everybody, a plan and a user.
func ThreeLevels(rdb script.Client) (gate.Gate, error) {
	all, err := limit.New(rdb, "levels", []limit.Policy{limit.TokenBucket{Name: "all", Rate: 1000, Per: time.Second}}, nil)
	if err != nil {
		return nil, err
	}
	plans, err := all.With(limit.TokenBucket{Name: "plan", Rate: 100, Per: time.Second})
	if err != nil {
		return nil, err
	}
	users, err := all.With(limit.TokenBucket{Name: "user", Rate: 10, Per: time.Second})
	if err != nil {
		return nil, err
	}
	return gate.RateLimits(
		gate.RateLimit(all, gate.Everyone, nil),
		gate.RateLimit(plans, gate.ByParam("plan"), nil),
		gate.RateLimit(users, gate.ByParam("user"), nil),
	), nil
}

// Quota counts by the calendar of a place.
func Quota(rdb script.Client) (*limit.Limiter, error) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		return nil, err
	}
	return limit.New(rdb, "quota", []limit.Policy{
		limit.CalendarWindow{Name: "daily", Limit: 10_000, Every: limit.Day, Location: shanghai},
		limit.CalendarWindow{Name: "monthly", Limit: 100_000, Every: limit.Month, Location: shanghai},
	}, nil)
}

// Changing keeps what was used if daily changes, as after a deployment.
func Changing(rdb script.Client, daily int64) (*limit.Limiter, error) {
	return limit.New(rdb, "reports", []limit.Policy{
		limit.KeepOnChange(limit.CalendarWindow{Name: "daily", Limit: daily, Every: limit.Day}),
		limit.KeepOnChange(limit.TokenBucket{Name: "burst", Rate: daily, Per: time.Hour, Burst: 100}),
	}, nil)
}

// Expensive makes exports cost ten times as much.
func Expensive(limiter *limit.Limiter) gate.Gate {
	return gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{
		Cost: func(r gate.Request) (int64, error) {
			if r.Route() == "/export" {
				return 10, nil
			}
			return 1, nil
		},
		Skip: func(r gate.Request) bool { return r.Path() == "/healthz" },
	})
}

// Patient lets requests wait for their turn.
func Patient(limiter *limit.Limiter) gate.Gate {
	return gate.RateLimit(limiter, gate.ByHeader("X-Api-Key"), &gate.RateLimitOptions{
		Wait: 2 * time.Second,
	})
}

// OwnAnswer renders refusals and logs faults.
func OwnAnswer(limiter *limit.Limiter) gate.Gate {
	return gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{
		Render: func(d gate.Denial) gate.Reply {
			return gate.Reply{
				Header: []gate.Field{{Name: "Content-Type", Value: "application/json"}},
				Body:   []byte(`{"error":"` + http.StatusText(d.Status) + `"}`),
			}
		},
		OnError: func(_ gate.Request, err error) {
			slog.Error("rate limit", "wiring", errors.Is(err, gate.ErrWiring), "err", err)
		},
	})
}

// Logins counts failed logins: those of an account from one address, and all of an
// address. proxies are the networks of yours that report the address of a client.
func Logins(rdb script.Client, proxies []netip.Prefix) (gate.Gate, error) {
	client := gate.ByIP(&gate.IPOptions{TrustedProxies: proxies})
	account := gate.Join(gate.Fold(gate.ByForm("email", nil)), client)
	guesses, err := limit.New(rdb, "logins", []limit.Policy{
		limit.SlidingLog{Name: "account", Limit: 5, Window: 10 * time.Minute},
	}, nil)
	if err != nil {
		return nil, err
	}
	all, err := guesses.With(limit.SlidingLog{Name: "address", Limit: 50, Window: 10 * time.Minute})
	if err != nil {
		return nil, err
	}
	failures := &gate.RateLimitOptions{Count: func(status int) bool { return status == http.StatusUnauthorized }}
	return gate.RateLimits(
		gate.RateLimit(all, client, failures),
		gate.RateLimit(guesses, account, failures),
	), nil
}

// Bans shuts out clients that keep guessing: for 15 minutes, and for longer each time.
func Bans(rdb script.Client) (*limit.Limiter, error) {
	return limit.New(rdb, "guesses", []limit.Policy{
		limit.WithBan(
			limit.FixedWindow{Limit: 5, Window: 10 * time.Minute},
			limit.Ban{After: 3, Within: 10 * time.Minute, For: 15 * time.Minute, Max: 24 * time.Hour},
		),
	}, nil)
}

// Listed refuses the addresses of one list, and does not limit those of the other.
func Listed(limiter *limit.Limiter, blocked, allowed *gate.List) gate.Gate {
	client := gate.ByIP(&gate.IPOptions{IPv6Prefix: 128})
	return gate.Chain(
		gate.Block(blocked, client, nil),
		gate.RateLimit(limiter, gate.ByIP(nil), &gate.RateLimitOptions{Skip: allowed.Skip(client)}),
	)
}

// InFlight lets at most two exports of a tenant run at once.
func InFlight(rdb script.Client) (gate.Gate, error) {
	exports, err := inflight.New(rdb, "exports", 2, nil)
	if err != nil {
		return nil, err
	}
	return gate.Concurrency(exports, gate.ByValue("tenant", tenantKey{}), nil), nil
}

// OneAtATime runs one request for an order at a time.
func OneAtATime(rdb script.Client) (gate.Gate, error) {
	locker, err := lock.New(rdb, "orders", nil)
	if err != nil {
		return nil, err
	}
	return gate.Exclusive(locker, gate.ByParam("order"), nil), nil
}

var errOvertaken = errors.New("no row was updated: a later holder of the lock has written, there is no such order, or it was paid under this hold before")

// Pay writes only if no later holder of the lock has written.
func Pay(ctx context.Context, db *sql.DB, order string) error {
	held, ok := lock.FromContext(ctx)
	if !ok {
		return errors.New("Pay is called without the lock")
	}
	done, err := db.ExecContext(ctx,
		"UPDATE orders SET state = 'paid', fence = $1 WHERE id = $2 AND fence < $1", held.Fence(), order)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return cmp.Or(err, errOvertaken)
	}
	return nil
}

// Book books several articles while it holds the locks of all of them.
func Book(ctx context.Context, locker *lock.Locker, book func(ctx context.Context, fences ...int64) error) error {
	err := locker.DoAll(ctx, []string{"sku-17", "sku-4"}, func(ctx context.Context, held *lock.Locks) error {
		return book(ctx, held.Fence("sku-17"), held.Fence("sku-4"))
	})
	return err
}

// PublishLocks shows a locker's counts at /debug/vars.
func PublishLocks(locker *lock.Locker) {
	expvar.Publish("lock."+locker.Name(), expvar.Func(func() any { return locker.Stats() })) // panics for a known name
}

// OpenByForce opens a lock whose holder is gone for good.
func OpenByForce(ctx context.Context, locker *lock.Locker) error {
	state, err := locker.Inspect(ctx, "param:order=17")
	if err != nil || !state.Held {
		return err
	}
	slog.WarnContext(ctx, "forcing a lock open", "holds", state.Holds, "fence", state.Fence, "lease", state.Lease)
	_, err = locker.ForceRelease(ctx, "param:order=17")
	return err
}

// Trial watches a daily limit before it is enforced.
func Trial(st *store.Store) (*limit.Limiter, error) {
	st.Observe(func(ctx context.Context, e store.Event) {
		if e.Outcome == store.ShadowDenied {
			slog.InfoContext(ctx, "would be denied", "limiter", e.Name, "policy", e.Policy)
		}
	})
	return limit.New(st, "api", []limit.Policy{
		limit.TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
		limit.Shadow(limit.FixedWindow{Name: "daily", Limit: 1000, Window: 24 * time.Hour}),
	}, nil)
}

// WhenRedisIsDown admits everything without Redis, logs each such decision, and checks
// Redis at start.
func WhenRedisIsDown(ctx context.Context, st *store.Store, policies []limit.Policy) (*limit.Limiter, error) {
	st.Observe(func(ctx context.Context, e store.Event) {
		if e.Primitive == store.Limit && e.Class != nil && e.Outcome != store.Canceled {
			slog.WarnContext(ctx, "Redis did not decide",
				"limiter", e.Name, "outcome", e.Outcome, "why", e.Class, "took", e.Duration)
		}
	})
	limiter, err := limit.New(st, "api", policies, &limit.Options{
		Fail: store.FailOpen, // FailClosed answers 503; the default, FailLocal, limits in this process
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := limiter.Warm(ctx); err != nil {
		slog.ErrorContext(ctx, "starting without Redis", "err", err)
	}
	return limiter, nil
}

// Publish shows a limiter's counts at /debug/vars.
func Publish(limiter *limit.Limiter) {
	expvar.Publish("limit."+limiter.Name(), expvar.Func(func() any { return limiter.Stats() })) // panics for a known name
}

// Operate returns how many logins an account has left from an address, and forgets the
// failed ones. account is the key of the gate.
func Operate(ctx context.Context, limiter *limit.Limiter, account gate.Key, email string, addr netip.Addr) (standing limit.Decision, found bool, err error) {
	subject, err := gate.Subject(account, gate.Values{Form: map[string]string{"email": email}, Addr: addr})
	if err != nil {
		return standing, false, err
	}
	if standing, err = limiter.Peek(ctx, subject); err != nil {
		return standing, false, err
	}
	found, err = limiter.Reset(ctx, subject)
	return standing, found, err
}
