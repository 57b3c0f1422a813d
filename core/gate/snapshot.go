package gate

import (
	"context"
	"iter"
	"net/netip"
)

// snapshot is what a hook can still learn about a request after Enter has returned.
type snapshot struct {
	ctx                              context.Context
	method, host, path, query, route string
	peer                             netip.AddrPort
}

func snapshotOf(r Request) *snapshot {
	return &snapshot{
		ctx: r.Context(), method: r.Method(), host: r.Host(),
		path: r.Path(), query: r.RawQuery(), route: r.Route(), peer: r.RemoteAddr(),
	}
}

func (k *snapshot) Context() context.Context           { return k.ctx }
func (k *snapshot) Method() string                     { return k.method }
func (k *snapshot) Host() string                       { return k.host }
func (k *snapshot) Path() string                       { return k.path }
func (k *snapshot) RawQuery() string                   { return k.query }
func (k *snapshot) Route() string                      { return k.route }
func (k *snapshot) Param(string) string                { return "" }
func (k *snapshot) Header(string) []string             { return nil }
func (k *snapshot) Headers() iter.Seq2[string, string] { return func(func(string, string) bool) {} }
func (k *snapshot) Value(key any) any                  { return k.ctx.Value(key) }
func (k *snapshot) RemoteAddr() netip.AddrPort         { return k.peer }
func (k *snapshot) Body(int64) ([]byte, error)         { return nil, ErrBodyConsumed }
