package gate

import (
	"context"
	"iter"
	"net/netip"
)

// kept is what a hook can still be told of a request after Enter has returned.
type kept struct {
	ctx                              context.Context
	method, host, path, query, route string
	peer                             netip.AddrPort
}

func keep(r Request) *kept {
	return &kept{
		ctx: r.Context(), method: r.Method(), host: r.Host(),
		path: r.Path(), query: r.RawQuery(), route: r.Route(), peer: r.RemoteAddr(),
	}
}

func (k *kept) Context() context.Context           { return k.ctx }
func (k *kept) Method() string                     { return k.method }
func (k *kept) Host() string                       { return k.host }
func (k *kept) Path() string                       { return k.path }
func (k *kept) RawQuery() string                   { return k.query }
func (k *kept) Route() string                      { return k.route }
func (k *kept) Param(string) string                { return "" }
func (k *kept) Header(string) []string             { return nil }
func (k *kept) Headers() iter.Seq2[string, string] { return func(func(string, string) bool) {} }
func (k *kept) Value(key any) any                  { return k.ctx.Value(key) }
func (k *kept) RemoteAddr() netip.AddrPort         { return k.peer }
func (k *kept) Body(int64) ([]byte, error)         { return nil, ErrBodyConsumed }
