package limit

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/wire"
)

var (
	// ErrKeyNumbers reports that a key does not contain its policy's numbers, because
	// [KeepOnChange] made it.
	ErrKeyNumbers = errors.New("limit: KeepOnChange made the key, so it does not contain the numbers of its policy")
	// ErrKeyHold reports that a key is that of a hold ([Limiter.Hold]), which has no policy.
	ErrKeyHold = errors.New("limit: the key is that of a hold, which has no policy")
	// ErrKeyOverride reports that a key has the policies of one subject ([Limiter.Override]). Its
	// value is their text.
	ErrKeyOverride = errors.New("limit: the key has the policies of one subject, as text")
	errKeyPolicy   = errors.New("limit: no policy has a key with this end")
)

// PolicyOfKey returns the policy whose keys have this end. The end is what follows the
// subject and a colon: for example "bucket-10-1s-20" or "login!window-5-1h". For the key
// of a [WithBan] it returns the policy without the ban, and the ban. A limiter with that
// policy (and with that ban, if there is one) has the same keys. [Shadow], [PerRequest]
// and a Unit are not part of a key.
//
// The error says that no policy has such keys, or matches ErrKeyNumbers, ErrKeyHold or
// ErrKeyOverride.
// PolicyOfKey sends nothing. It is for operators' tools.
func PolicyOfKey(end string) (p Policy, b Ban, err error) {
	switch end {
	case kind.Hold.Tail:
		return nil, Ban{}, ErrKeyHold
	case wire.OverrideTail:
		return nil, Ban{}, ErrKeyOverride
	}
	rest, ban, bans := strings.Cut(end, "!ban-")
	name, signature, named := strings.Cut(rest, "!")
	if !named {
		name, signature = "", rest
	}
	if named && strings.HasPrefix(signature, "kept-") {
		return nil, Ban{}, fmt.Errorf("%w: %.80q", ErrKeyNumbers, end)
	}
	if bans {
		b = banOfKey(ban)
	}
	p = policyOfSignature(name, signature)
	// If compile would write the key differently, it belongs to something else.
	if p == nil || written(p, b, bans) != end {
		return nil, Ban{}, fmt.Errorf("%w: %.80q", errKeyPolicy, end)
	}
	return p, b, nil
}

// KeysOfPolicy returns how the keys of a policy end: the key in which it counts, and that of its
// ban, which is empty without a [WithBan]. It is the inverse of PolicyOfKey, with every default
// filled in. The error joins every fault of the policy. KeysOfPolicy sends nothing. It is for
// operators' tools.
func KeysOfPolicy(p Policy) (end, ban string, err error) {
	r, err := checked(p)
	if err != nil {
		return "", "", fmt.Errorf("limit.KeysOfPolicy: %w", err)
	}
	if r.Ban != nil {
		ban = r.Ban.Tail
	}
	return r.Tail, ban, nil
}

// written returns the end of the key of the policy, or of its ban. It is empty if there
// is none.
func written(p Policy, b Ban, bans bool) string {
	if bans {
		_, end, _ := KeysOfPolicy(WithBan(p, b))
		return end
	}
	end, _, _ := KeysOfPolicy(p)
	return end
}

// signed matches every signature.
var signed = regexp.MustCompile(`^([a-z]+)-(\d+)-([a-z0-9.]+)(?:-(.+?))??(?:-debt-(\d+))?$`)

// policyOfSignature returns the policy with that signature, or nil. If it cannot read a part, the
// policy has another signature.
func policyOfSignature(name, signature string) Policy {
	m := signed.FindStringSubmatch(signature)
	if m == nil {
		return nil
	}
	d := draft{kind: m[1], name: name, every: periodOf(m[3])}
	d.limit, _ = strconv.ParseInt(m[2], 10, 64)
	d.length, _ = time.ParseDuration(m[3])
	d.burst, _ = strconv.ParseInt(m[4], 10, 64)
	d.debt, _ = strconv.ParseInt(m[5], 10, 64)
	if d.every != 0 {
		d.in = zoneOfKey(m[4])
	}
	return d.policy()
}

// banOfKey reads what follows "ban-". A number that it cannot read becomes 0, which no
// ban has.
func banOfKey(text string) (b Ban) {
	parts := append(strings.Split(text, "-"), "", "", "")
	b.After, _ = strconv.ParseInt(parts[0], 10, 64)
	b.Within, _ = time.ParseDuration(parts[1])
	b.For, _ = time.ParseDuration(parts[2])
	b.Max, _ = time.ParseDuration(parts[3])
	return b
}
