package limit

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// local keeps the state in this process, by the models.
type local struct {
	began time.Time // the clock is monotonic from here on

	mu    sync.Mutex
	cells *simplelru.LRU[localKey, *cell]
}

type localKey struct{ subject, tail string }

func newLocal(size int) *local {
	if size == 0 {
		size = DefaultMaxLocal
	}
	cells, err := simplelru.NewLRU[localKey, *cell](size, nil)
	if err != nil {
		panic("limit: " + err.Error()) // only of a size below 1, which newLimiter refused
	}
	return &local{began: time.Now(), cells: cells}
}

func (b *local) with([]rule) backend { return b }

func (b *local) now() int64 {
	return b.began.UnixMicro() + time.Since(b.began).Microseconds()
}

func (b *local) take(ctx context.Context, l *Limiter, subject string, cost int64, into []reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var few [4]*cell
	cells := few[:0]
	for _, r := range l.rules {
		c, ok := b.cells.Get(localKey{subject, r.id().tail})
		if !ok {
			c = new(cell)
		}
		cells = append(cells, c)
	}
	if takeModel(l.rules, cells, b.now(), cost, into) {
		for i, r := range l.rules {
			b.cells.Add(localKey{subject, r.id().tail}, cells[i])
		}
	}
	return nil
}

// takeModel is what the scripts do, in Go: it reads every rule's cell, and
// charges all of them or none. It says whether they were charged.
func takeModel(rules []rule, cells []*cell, now, cost int64, into []reading) bool {
	granted := true
	for i, r := range rules {
		r.settle(cells[i], now)
		into[i] = r.read(cells[i], cost)
		if cost > 0 && !r.admits(cells[i], cost) {
			into[i].denied = true
			granted = false
		}
	}
	if !granted || cost == 0 {
		return false
	}
	for i, r := range rules {
		r.charge(cells[i], cost)
		into[i] = r.read(cells[i], 0)
	}
	return true
}

func (b *local) reset(ctx context.Context, l *Limiter, subject string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range l.rules {
		b.cells.Remove(localKey{subject, r.id().tail})
	}
	return nil
}
