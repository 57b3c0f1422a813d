package idempotency_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// A fingerprint is compared as a whole, and only with the fingerprint of the record. It
// is not compared with the words before it, or with text of the result.
func TestAReplayIsForItsFingerprintAlone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		g := guard(t, rdb, prefix, nil)
		const result = "a line other\n x other\ndone 1 1 0 0 me other\n\x00\xff"
		if err := begin(t, g, "key", "the-print").Conclude(t.Context(), idempotency.DoneWith([]byte(result))); err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"print", "-print", "the-prin", "he-print", "xthe-print", "other", "0", "%S+", ""} {
			refused(t, g, "key", other, idempotency.ErrMismatch)
		}
		replayed(t, g, "key", "the-print", result)
	})
}

// A caller may change the result of a replay, and append to it. Other callers do not see
// that.
func TestAReplayMayBeChanged(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for name, keys := range map[string][]idempotency.EncryptionKey{"plain": nil, "sealed": {newer}} {
			g := guard(t, rdb, prefix, &idempotency.Options{EncryptionKeys: keys})
			for _, result := range []string{"", "result"} {
				key := name + result
				if err := begin(t, g, key, "").Conclude(t.Context(), idempotency.DoneWith([]byte(result))); err != nil {
					t.Fatal(err)
				}
				var all [3][]byte
				for i := range all {
					run, err := g.Begin(t.Context(), key, "")
					if err != nil || run.Result == nil {
						t.Fatalf("Begin: got %+v, %v, want a result", run, err)
					}
					all[i] = run.Result
				}
				clear(all[0])
				_ = append(all[1], "more"...)
				if string(all[1]) != result || string(all[2]) != result {
					t.Errorf("%s: got %q, want %q from the second and the third", name, all, result)
				}
				replayed(t, g, key, "", result)
			}
		}
	})
}
