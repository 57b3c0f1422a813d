package wire

import (
	"context"
	"slices"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

// These are the scripts that do not decide.
var (
	BanScript      = script.FromFS(lua.FS, "limit_ban.lua").Batched()
	ResetScript    = script.FromFS(lua.FS, "limit_reset.lua").Batched().Replies(reply.From(0), nil)
	OverrideScript = script.FromFS(lua.FS, "limit_override.lua").Batched().Replies(nil, isOverride)
	RenewScript    = script.FromFS(lua.FS, "limit_renew.lua").Essential().Batched()
)

// Warm loads the scripts on every node of a cluster and makes one decision that takes nothing.
func (r *Remote) Warm(ctx context.Context) error {
	scripts := []*script.Script{r.Script, ResetScript, r.Settle}
	if len(r.set.Bars) > 0 {
		scripts = append(scripts, BanScript)
	}
	if r.set.Overrides {
		scripts = append(scripts, OverrideScript)
	}
	if r.set.Leases {
		scripts = append(scripts, RenewScript)
	}
	return ask.Warm(ctx, r.Store, func(ctx context.Context, run *ask.Runner) error {
		asked := *r
		asked.Asker = &Asker{Decider: &ask.Decider{Runner: *run}}
		err := asked.Take(ctx, &kind.Request{Subject: "warm", Readings: make([]kind.Reading, len(r.set.Rules))})
		if err == ErrOverridden { // Redis has answered: a user has this name
			return nil
		}
		return err
	}, scripts...)
}

// Reset forgets what a subject has taken. It reports whether there was anything.
func (r *Remote) Reset(ctx context.Context, subject string) (found bool, err error) {
	keys := make([]string, 0, len(r.set.Rules))
	for _, rule := range r.set.Rules {
		keys = append(keys, r.Space.Key(subject, rule.Tail))
		if rule.Estimates { // in another process the policy may have a lease
			keys = append(keys, r.estimatesOf(rule, subject))
		}
	}
	for _, b := range r.set.Bars {
		if !b.Counts() {
			keys = append(keys, r.Space.Key(subject, b.Tail))
		}
	}
	reply, err := r.Run(ctx, ResetScript, keys)
	n, _ := reply.(int64)
	return n > 0, err
}

// Ban begins each of some bans, for duration milliseconds. With 0 it lifts them, and with -1 it
// only asks. It returns how long each ban would still have lasted before.
func (r *Remote) Ban(ctx context.Context, bans []*kind.Ban, subject string, duration int64) (lefts []int64, err error) {
	keys, args := make([]string, 0, len(bans)), append(make([]any, 0, 1+len(bans)), kind.Integer(duration))
	for _, b := range bans {
		keys, args = append(keys, r.Space.Key(subject, b.Tail)), append(args, kind.Integer(b.Most))
	}
	told, err := r.Run(ctx, BanScript.Replies(nil, reply.List(len(bans), reply.Any)), keys, args...)
	if err != nil {
		return nil, err
	}
	lefts, _ = reply.Numbers(told)
	if slices.ContainsFunc(lefts, func(left int64) bool { return !kind.IsBan(left) }) {
		return nil, broken(BanScript)
	}
	return lefts, nil
}

// OverrideTail is the end of the key of the policies that a subject has in place of the limiter's.
// No policy has a tail like this.
const OverrideTail = "override"

// Override gives a subject the policies that the text says, for duration milliseconds. With 0 it
// ends them, and with -1 it only asks. It returns the text that there was before, and for how many
// milliseconds more it would have counted.
func (r *Remote) Override(ctx context.Context, subject, text string, duration int64) (was string, left int64, err error) {
	told, err := r.Run(ctx, OverrideScript, []string{r.Space.Key(subject, OverrideTail)}, kind.Integer(duration), text)
	if err != nil {
		return "", 0, err
	}
	was, left, _ = override(told)
	return was, left, nil
}

// override returns a text and its milliseconds, and whether a reply has them.
func override(told any) (text string, left int64, ok bool) {
	parts, _ := told.([]any)
	if len(parts) != 2 {
		return "", 0, false
	}
	text, isText := parts[0].(string)
	left, isNumber := parts[1].(int64)
	return text, left, isText && isNumber && left >= 0
}

func isOverride(told any) bool {
	_, _, ok := override(told)
	return ok
}
