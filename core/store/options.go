package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// These are the ranges of the options.
const (
	minBudget = time.Millisecond
	maxBudget = time.Hour

	maxContact = time.Minute
)

// QueueMode says how a store sends calls. The zero value means Queued, or Direct with
// the build tag neap_direct.
type QueueMode int

// These are the modes.
const (
	// Direct sends each call by itself, on a connection of the client's pool.
	Direct QueueMode = iota + 1
	// Queued sends the calls of many callers together, in pipelines of a *redis.Client,
	// *redis.ClusterClient or *redis.Ring. With another client it is the same as Direct.
	// A call goes by itself if its caller is alone, or if its script is not
	// [script.Script.Batched].
	//
	// Up to 10,000 calls wait for a server. A further call is tried again within its
	// budget and then fails with [script.ErrNotExecuted]. If goroutines of this process
	// wait longer than 5 ms for a processor, a call without an answer may take up to a
	// second longer than its budget, because its answer may have arrived and not been
	// read.
	Queued
)

// Options are the options of a store. The zero value is ready to use. Open copies it.
type Options struct {
	// Prefix begins every key. It has up to 64 printable ASCII characters, without spaces
	// and braces. Empty means "neap".
	Prefix string
	// SubjectSecret, if set, keeps subjects out of Redis. Each subject, key, job, owner,
	// item, buyer and id is stored as its HMAC-SHA-256 under this secret. It has at least
	// 16 bytes. Another secret makes other keys, so all state begins anew.
	SubjectSecret []byte
	// StoredSubjects is for operators' tools. If it is true, a subject, an owner or an
	// item that has the form of a hash in Redis (# and 43 letters, digits, dashes or
	// underscores) means the one with that hash. The tool does not need the secret then.
	// Do not set it if a request says what its subject is: the request could name another
	// subject's hash.
	StoredSubjects bool
	// Budget is the most time that one call takes, whatever the client's own time-outs
	// are: a millisecond to an hour. A primitive with a Budget of its own uses that
	// instead. 0 means limit.DefaultBudget (50 ms) for limits, also on requests in
	// flight, and script.DefaultBudget (250 ms) for everything else. An earlier deadline
	// of a caller's own ends its call, and is no failure of Redis. With the queue, a call
	// may take longer while the process is short of CPU: see [Queued].
	Budget time.Duration
	// FirstContact is how long calls may take until a server has answered once, counted
	// from the first call of the store, or from the question of a Warm. Connecting may take
	// longer than a Budget. Later calls have their Budget. A caller's own deadline always
	// counts. So if Redis is down when a process starts, that costs this time at most once,
	// beside what Warm took. FirstContact is at most a minute; 0 means a second. If it is
	// less than a Budget, it changes nothing.
	FirstContact time.Duration
	// Queue says how calls are sent. 0 means what [QueueMode] says.
	Queue QueueMode
	// Logger gets one line when a server does not answer, and one when it answers again,
	// for each server and outage. A line has the server's address, the class of the
	// error, how many calls had no answer or were held back, and for how long. It never
	// has a key. If the client does not name its servers, the address is the client's Go
	// type. Nil means slog.Default, as it is when the line is logged.
	//
	// While a server refuses calls, for want of a right or of memory for example, Logger
	// gets a line at most once a minute. It has the class of the error and Redis' code,
	// such as NOPERM or OOM.
	//
	// A server is lost if one of its breakers opens, or if a call has no answer and none
	// was answered for a second. It is back when it answers after a second without a
	// failure, and each of its breakers is closed or had no call for a minute. If calls
	// go to other servers and none to a lost one for a minute, it is forgotten and its
	// outage ends.
	Logger *slog.Logger
}

// withDefaults returns a checked copy of the options with the defaults filled in.
func (o *Options) withDefaults() (Options, error) {
	var own Options
	if o != nil {
		own = *o
		own.SubjectSecret = bytes.Clone(o.SubjectSecret)
	}
	own.Prefix = cmp.Or(own.Prefix, keyspace.DefaultPrefix)
	own.FirstContact = cmp.Or(own.FirstContact, defaultFirstContact)
	own.Queue = cmp.Or(own.Queue, defaultQueue)
	return own, errors.Join(
		keyspace.CheckPrefix(own.Prefix),
		keyspace.CheckSecret(own.SubjectSecret),
		checkBudget(own.Budget),
		checkContact(own.FirstContact),
		checkQueue(own.Queue),
	)
}

func checkQueue(m QueueMode) error {
	if m == Direct || m == Queued {
		return nil
	}
	return fmt.Errorf("Queue is %d: use Direct, Queued, or 0 for Queued", m)
}

func checkContact(d time.Duration) error {
	if d >= 0 && d <= maxContact {
		return nil
	}
	return fmt.Errorf("FirstContact is %v: use up to %v, or 0 for %v", d, maxContact, defaultFirstContact)
}

func checkBudget(d time.Duration) error {
	if d == 0 || d >= minBudget && d <= maxBudget {
		return nil
	}
	return fmt.Errorf("Budget is %v: use %v to %v, or 0 for the default of each primitive", d, minBudget, maxBudget)
}
