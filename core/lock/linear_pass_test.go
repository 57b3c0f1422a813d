package lock_test

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/history"
	"github.com/neap-go/neap/internal/redistest"
)

// successors is a client that notes the holds which a release may grant to a successor.
// If no caller is told of such a hold, the history does not know when it ends.
type successors struct {
	history.Client
	recorder *recorder
}

func (c successors) Process(ctx context.Context, cmd redis.Cmder) error {
	if text := cmd.String(); !strings.Contains(text, releaseScript.SHA()) && !strings.Contains(text, releaseScript.Source()) {
		return c.Client.Process(ctx, cmd)
	}
	args := redistest.Write(cmd)
	if len(args) < 7 {
		return c.Client.Process(ctx, cmd)
	}
	_, key, _ := strings.Cut(args[3].(string), "{")
	p, first := c.recorder.passing(strings.TrimSuffix(key, "}"), args[6])
	err := c.Client.Process(ctx, cmd)
	if n, ok := cmd.(interface{ Val() any }).Val().(int64); ok && err == nil && (n > 1 || first) {
		c.recorder.passed(p, n)
	}
	return err
}

// pass is a hold that a release may grant. begins and ends are its operations in the
// history.
type pass struct {
	key          string
	begins, ends int
}

// passing notes a hold that may be about to be granted. first reports whether it was not
// noted before.
func (d *recorder) passing(key string, successor any) (p pass, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.passes[successor]; ok {
		return p, false
	}
	const nobody = linearWorkers
	call, hold := d.Now(), int(d.holds.Add(1))
	p = pass{
		key,
		d.Open(nobody, asked{verb: mayAcquire, key: key, hold: hold}, call, told{}),
		d.Open(nobody, asked{verb: mayRelease, key: key, hold: hold}, call, told{}),
	}
	d.passes[successor] = p
	return p, true
}

// passed notes the reply: the fence of the hold, or that there is none.
func (d *recorder) passed(p pass, fence int64) {
	if fence <= 1 {
		d.strike(p)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given[grantee{p.key, fence}] = p
}

// accepted notes that a caller was told of the hold.
func (d *recorder) accepted(key string, fence int64) {
	d.mu.Lock()
	p, ok := d.given[grantee{key, fence}]
	d.mu.Unlock()
	if ok {
		d.strike(p)
	}
}

func (d *recorder) strike(p pass) {
	d.Close(p.begins, false)
	d.Close(p.ends, false)
}

type grantee struct {
	key   string
	fence int64
}
