package script_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestEachRightOfGoRedisIsNeeded removes from the documented ACL line each right that is
// not for commands in scripts, one at a time. Something then fails that works with the
// right.
func TestEachRightOfGoRedisIsNeeded(t *testing.T) {
	t.Parallel()
	one, many := redistest.NewStandalone(t), redistest.NewCluster(t)
	run := func(rdb script.Client, s *script.Script, key string) error {
		r := newRunner(t, rdb, &script.Options{Budget: 5 * time.Second})
		_, err := r.Run(t.Context(), s, []string{key}, 1)
		return err
	}
	standalone := func(user string) *redis.Client {
		return one.Client(t, func(o *redis.Options) { o.Username = user })
	}
	cluster := func(user string, p *redistest.Proxy) *redis.ClusterClient {
		return many.Client(t, func(o *redis.ClusterOptions) {
			o.Username = user
			if p != nil {
				o.Dialer = p.Dial
			}
		})
	}
	unheard := func() *script.Script {
		return script.New("unheard.lua", fmt.Sprintf("%s -- %s", count.Source(), redistest.Prefix(t)))
	}
	for right, try := range map[string]func(t *testing.T, user, key string) error{
		"+evalsha": func(_ *testing.T, user, key string) error { return run(standalone(user), count, key) },
		"+eval":    func(_ *testing.T, user, key string) error { return run(standalone(user), unheard(), key) },
		"+script|load": func(t *testing.T, user, _ string) error {
			return newRunner(t, standalone(user), nil).Load(t.Context(), count)
		},
		"+cluster|slots": func(_ *testing.T, user, key string) error { return run(cluster(user, nil), count, key) },
		"+command": func(t *testing.T, user, key string) error {
			p := many.Proxy(t)
			rdb := cluster(user, p)
			for range 5 {
				if err := run(rdb, count, key); err != nil {
					return err
				}
			}
			if n := p.Forwarded("command"); n > 1 {
				return fmt.Errorf("5 calls asked for COMMAND %d times", n)
			}
			return nil
		},
		"+asking": func(t *testing.T, user, key string) error {
			many.HalfMoveSlot(t, key)
			return run(cluster(user, nil), count, key)
		},
		"+ping": func(t *testing.T, user, key string) error {
			checked := make(chan struct{}, 100)
			ring := redis.NewRing(&redis.RingOptions{
				Addrs: map[string]string{"one": one.Addr()}, Username: user, Password: redistest.Password,
				HeartbeatFrequency: 5 * time.Millisecond,
				HeartbeatFn: func(ctx context.Context, rdb *redis.Client) bool { // as the default does
					select {
					case checked <- struct{}{}:
					default:
					}
					return rdb.Ping(ctx).Err() == nil
				},
			})
			t.Cleanup(func() { ring.Close() })
			for range 5 { // three in a row take a server out
				<-checked
			}
			_, err := newRunner(t, ring, &script.Options{Budget: time.Second}).Run(t.Context(), count, []string{key}, 1)
			return err
		},
	} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			if err := try(t, redistest.User, redistest.Prefix(t)); err != nil {
				t.Errorf("a user with the right: got %v, want no error", err)
			}
			user := redistest.NewUser(t, redistest.Without(t, right), append([]*redistest.Server{one}, many.Nodes()...)...)
			err := try(t, user, redistest.Prefix(t))
			if err == nil {
				t.Error("a user without the right: got no error, want one")
			}
			if (right == "+eval" || right == "+evalsha") && !errors.Is(err, script.ErrConfiguration) {
				t.Errorf("a user without the right: got %v, want ErrConfiguration", err)
			}
		})
	}
}

// TestARefusedCommandIsConfiguration runs scripts as a user who may not use what is in
// them: a command, a key, a channel. The result is the same whether the script raises the
// refusal or returns it.
func TestARefusedCommandIsConfiguration(t *testing.T) {
	t.Parallel()
	one, many := redistest.NewStandalone(t), redistest.NewCluster(t)
	const rules = "resetchannels &neap:* ~neap:* -@all +evalsha +eval +cluster|slots +command +get +publish"
	user := redistest.NewUser(t, rules, append([]*redistest.Server{one}, many.Nodes()...)...)
	for server, rdb := range map[string]script.Client{
		"standalone": one.Client(t, func(o *redis.Options) { o.Username = user }),
		"cluster":    many.Client(t, func(o *redis.ClusterOptions) { o.Username = user }),
	} {
		r := newRunner(t, rdb, &script.Options{Budget: 5 * time.Second})
		run := func(key, body string) error {
			_, err := r.Run(t.Context(), script.New("refused.lua", body), []string{key})
			return err
		}
		const own = "neap:{a}"
		for _, command := range []string{"'SET', KEYS[1], 1", "'GET', '{a}'", "'PUBLISH', 'news', 1"} {
			for _, body := range []string{"return redis.call(%s)", "return redis.pcall(%s)", "local r = redis.pcall(%s); return redis.error_reply(r.err)"} {
				if err := run(own, fmt.Sprintf(body, command)); !errors.Is(err, script.ErrConfiguration) {
					t.Errorf("%s: "+body+": got %v, want ErrConfiguration", server, command, err)
				}
			}
		}
		if err := run("other", "return redis.call('GET', KEYS[1])"); !errors.Is(err, script.ErrConfiguration) {
			t.Errorf("%s: a key of others: got %v, want ErrConfiguration", server, err)
		}
		if err := run(own, "return redis.call('GET', KEYS[1])"); err != nil {
			t.Errorf("%s: what the user may do: got %v, want no error", server, err)
		}
	}
}

// TestSomeOptionsNeedMore is about clients that send further commands when they
// connect.
func TestSomeOptionsNeedMore(t *testing.T) {
	t.Parallel()
	one, many := redistest.NewStandalone(t), redistest.NewCluster(t)
	for right, connect := range map[string]func(user string) script.Client{
		"+select": func(user string) script.Client {
			return one.Client(t, func(o *redis.Options) { o.Username, o.DB = user, 1 })
		},
		"+client|setname": func(user string) script.Client {
			return one.Client(t, func(o *redis.Options) { o.Username, o.ClientName = user, "shop" })
		},
		"+readonly": func(user string) script.Client {
			return many.Client(t, func(o *redis.ClusterOptions) { o.Username, o.ReadOnly = user, true })
		},
	} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			for has, rules := range map[bool]string{false: redistest.Rules, true: redistest.Rules + " " + right} {
				user := redistest.NewUser(t, rules, append([]*redistest.Server{one}, many.Nodes()...)...)
				r := newRunner(t, connect(user), &script.Options{Budget: 5 * time.Second})
				_, err := r.Run(t.Context(), count, []string{redistest.Prefix(t)}, 1)
				if has && err != nil || !has && !errors.Is(err, script.ErrConfiguration) {
					t.Errorf("a user that has the right (%v): got %v, want no error, and without it ErrConfiguration",
						has, err)
				}
			}
		})
	}
}
