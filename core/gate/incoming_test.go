package gate

import (
	"context"
	"net/textproto"
)

// incoming is a Request with only the parts that Idempotent reads.
type incoming struct {
	snapshot
	header map[string][]string
	body   string
	err    error
	max    int64
}

func (q *incoming) Context() context.Context { return context.Background() }

func (q *incoming) Header(name string) []string {
	return q.header[textproto.CanonicalMIMEHeaderKey(name)]
}

func (q *incoming) Body(max int64) ([]byte, error) {
	q.max = max
	if q.err == nil && int64(len(q.body)) > max {
		return nil, ErrBodyTooLarge
	}
	return []byte(q.body), q.err
}
