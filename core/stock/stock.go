package stock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/internal/ring"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/lua"
)

var (
	openScript    = script.FromFS(lua.FS, "stock_open.lua").Batched().Replies(reply.OneOf(1, 0, disagrees, outside), nil)
	reserveScript = script.FromFS(lua.FS, "stock_reserve.lua").Batched().
			Replies(reply.OneOf(1, 2, 3, 4, none, yours, unknown, disagrees, differs, due, crowded), nil)
	confirmScript = reserveScript.Essential()
	renewScript   = script.FromFS(lua.FS, "stock_renew.lua").Batched().Essential()
	cancelScript  = script.FromFS(lua.FS, "stock_cancel.lua").Batched().Essential().Replies(reply.OneOf(1, 2, 0, unknown, disagrees), nil)
	sweepScript   = script.FromFS(lua.FS, "stock_sweep.lua").Essential().Replies(isPlace, nil)
	restockScript = script.FromFS(lua.FS, "stock_restock.lua").Batched().Replies(reply.OneOf(1, 0, none, unknown, disagrees, differs), nil)
	leftScript    = script.FromFS(lua.FS, "stock_left.lua").Batched().Replies(reply.OneOf(unknown, disagrees, due), isLevel)
	buyersScript  = script.FromFS(lua.FS, "stock_buyers.lua").Replies(reply.OneOf(unknown, disagrees), isBuyers)
	forgetScript  = script.FromFS(lua.FS, "stock_forget.lua").Batched().Replies(reply.OneOf(1, 0), nil)
)

func isPlace(n int64) bool { return n >= 0 || n == unknown || n == disagrees }

// These are the replies of the scripts that mean no.
const (
	none      = -1 // reserve: sold out; renew: lapsed; restock: too many
	yours     = -2
	unknown   = -3
	disagrees = -4
	differs   = -5
	due       = -6
	outside   = -7 // open: until is out of range
	crowded   = -8 // reserve: eight calls have it, and no more can be told apart
)

// Stock sells items. It is immutable and safe for concurrent use, and needs no Close. The
// zero Stock is not usable.
type Stock struct {
	name  string
	opts  Options
	lease any // in milliseconds; converted to any once
	space keyspace.Space
	store *store.Store
	asker ask.Asker
	plain lease.Terms
	kept  lease.Terms // for reservations that are renewed
	undo  undo.Undoer // takes back grants that no caller was told of
	late  undo.Undoer // repeats conclusions that Redis did not confirm
	count counters
}

// New makes a Stock. It sends nothing.
//
// The name has 1 to 64 letters, digits, dots, dashes and underscores, and sets the keys
// of this Stock apart from others. Stocks with the same name and prefix share their
// items, in one process or in many. Nil opts mean the zero Options.
//
// New refuses a Ring, and a struct that embeds one. Each client of a Ring chooses a
// server among those that it can reach, so two clients could sell one unit. The error
// joins all faults, each with its field and the remedy.
func New(rdb script.Client, name string, opts *Options) (*Stock, error) {
	st, unusable := store.Of(rdb)
	in, _ := inside.Of(st)
	own, err := opts.withDefaults(in)
	space, fault := in.Space("stock", name)
	if ring.Is(st.Client()) {
		unusable = errRing
	}
	if err := errors.Join(unusable, fault, err); err != nil {
		return nil, fmt.Errorf("stock.New: %w", err)
	}
	s := &Stock{
		name: name, opts: own, lease: milliseconds(own.Lease), space: space, store: st,
		asker: ask.Asker{Runner: ask.Runner{Inside: in, Budget: own.Budget}},
		plain: lease.Terms{Wheel: in.Leases(), Lease: own.Lease, NoRenewal: true, Expired: ErrLapsed},
		kept:  lease.Terms{Wheel: in.Leases(), Lease: own.Lease, Expired: ErrLapsed},
		undo:  undo.Undoer{Room: doubted, Total: in.Pending()},
		late:  undo.Undoer{Room: doubted, Total: in.Pending()},
	}
	s.kept.Together = renewals{s}
	store.Register(st, s, (*Stock).gauge, nil)
	return s, nil
}

// Name returns the name that was given to New.
func (s *Stock) Name() string {
	misuse.Made(s.made(), errStock)
	return s.name
}

func (s *Stock) made() bool { return s != nil && s.store != nil }

// key returns the name of an item's record in Redis.
func (s *Stock) key(item string) (string, error) {
	switch {
	case !s.made():
		return "", errStock
	case item == "":
		return "", ErrItem
	}
	return s.space.Key(item, ""), nil
}

// Lease returns how long a reservation lasts if it is neither confirmed nor renewed.
func (s *Stock) Lease() time.Duration {
	misuse.Made(s.made(), errStock)
	return s.opts.Lease
}

// number runs a script whose reply is a number.
func (s *Stock) number(
	ctx context.Context, sc *script.Script, key string, args ...any,
) (n int64, asked time.Time, in ask.Doubt, err error) {
	reply, asked, in, err := s.asker.Ask(ctx, sc, key, args...)
	n, _ = reply.(int64)
	return n, asked, in, err
}

// once is number for a script that must not run twice.
func (s *Stock) once(ctx context.Context, sc *script.Script, key string, args ...any) (int64, error) {
	reply, err := s.asker.Run(ctx, sc, []string{key}, args...)
	n, _ := reply.(int64)
	return n, err
}

// fault returns what a reply below 0 means, whatever the call.
func fault(n int64) error {
	switch n {
	case yours:
		return ErrYours
	case unknown:
		return ErrUnknown
	case disagrees:
		return ErrDisagrees
	case differs:
		return ErrQuantity
	case outside:
		return ErrUntil
	case crowded:
		return ErrCalls
	}
	return nil
}

func milliseconds(d time.Duration) string { return integer(d.Milliseconds()) }

func integer(n int64) string { return strconv.FormatInt(n, 10) }
