package stock_test

import (
	"context"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

var sources = func() map[string]string {
	files, err := fs.Glob(lua.FS, "stock_*.lua")
	if err != nil {
		panic(err)
	}
	all := map[string]string{}
	for _, file := range files {
		s := script.FromFS(lua.FS, file)
		all[s.SHA()] = s.Source()
	}
	return all
}()

// place is a server for the items of a model, with a clock that moves in hours.
type place struct {
	admin, rdb redis.UniversalClient
	ahead      func(hours int64) // nil if the last argument tells the scripts
	hours      atomic.Int64
}

func (p *place) pass(hours int64) {
	if hours = p.hours.Add(hours); p.ahead != nil {
		p.ahead(hours)
	}
}

// shifted is a client of a place, and can lose replies.
type shifted struct {
	*place

	mu   sync.Mutex
	lose int  // the number of the next replies that are lost; below 0 all of them
	over bool // the server is gone
}

// shift makes a script see another clock. The line numbers of the script stay the same.
const shift = "local real, ahead = redis, table.remove(ARGV) * 3600; local function other(f) return function(name, ...) " +
	"local r = f(name, ...); if name == 'TIME' then r[1] = string.format('%.0f', r[1] + ahead) end; return r end end; " +
	"local redis = {call = other(real.call), pcall = other(real.pcall), error_reply = real.error_reply} "

func (c *shifted) Process(ctx context.Context, cmd redis.Cmder) error {
	args := redistest.Write(cmd)
	source, ok := sources[args[1].(string)]
	if !ok {
		return c.rdb.Process(ctx, cmd)
	}
	if c.ahead == nil {
		args = append([]any{"eval", shift + source}, append(args[2:len(args):len(args)], c.hours.Load())...)
	} else {
		args = append([]any{"eval", source}, args[2:]...)
	}
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if over {
		cmd.SetErr(errOver)
		return errOver
	}
	own := redis.NewCmd(ctx, args...)
	err := c.rdb.Process(ctx, own)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lose != 0 && err == nil {
		c.lose = max(c.lose-1, -1)
		err = io.EOF
	}
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	cmd.(interface{ SetVal(any) }).SetVal(own.Val())
	return nil
}

func (c *shifted) loses(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose = n
}

func (c *shifted) ends() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// errOver is the error of a server that is gone.
const errOver = proto("ERR it is over")

type proto string

func (e proto) Error() string { return string(e) }
func (proto) RedisError()     {}

func onMiniredis(t *testing.T) *place {
	t.Helper()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	began := time.Now()
	ahead := func(hours int64) { m.SetTime(began.Add(time.Duration(hours) * time.Hour)) }
	ahead(0)
	return &place{admin: rdb, rdb: rdb, ahead: ahead}
}

func onServer(t *testing.T) *place {
	t.Helper()
	srv := redistest.Standalone(t)
	return &place{admin: srv.Admin(t), rdb: srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })}
}

func onCluster(t *testing.T) *place {
	t.Helper()
	many := redistest.Cluster(t)
	return &place{admin: many.Admin(t), rdb: many.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })}
}
