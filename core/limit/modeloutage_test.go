package limit_test

import (
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// process is what a process knows that may lose its Redis.
type process struct {
	rdb *redistest.CutClient
	own *model               // of what it has counted without Redis
	had map[string]algorithm // what Redis said last of each policy, unless the process goes on from it already
}

// hears has it learn what Redis decided.
func (p *process) hears(of *model, now int64) {
	if of.hold != nil {
		p.own.hold.hears(of.hold.left(now).Milliseconds(), now/1000)
	}
	for i, part := range of.parts {
		said := part.state.clone()
		switch s := said.(type) {
		case *slidingLog:
			s.forgets(now)
		case *keptBucket: // Redis does not say how much others let it owe
			s.by.most = s.most
		}
		p.had[part.base.PolicyName()] = said
		if part.bans != nil {
			p.own.parts[i].bans.hears(part.bans.left(now).Milliseconds(), now/1000)
		}
	}
}

// untold returns how much longer those bans last that the process has begun and Redis does not know.
func (p *process) untold(now int64) (left time.Duration) {
	for _, part := range p.own.parts {
		if part.bans != nil && !part.bans.told {
			left = max(left, part.bans.left(now))
		}
	}
	return left
}

// hearsOf has it learn of a ban by hand that it made.
func (p *process) hearsOf(now int64, d time.Duration) {
	p.own.ban(now, d)
	for _, part := range p.own.parts {
		if part.bans != nil {
			part.bans.told = d > 0
		}
	}
}

// goesOn has it go on from what Redis said last, where it has counted less itself.
func (p *process) goesOn(now int64) {
	for _, part := range p.own.parts {
		last, known := p.had[part.base.PolicyName()]
		if known && max(last.free(now), 0) < max(part.state.free(now), 0) {
			part.state = last
		}
	}
	clear(p.had)
}
