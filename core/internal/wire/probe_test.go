package wire_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestAProbeIsAnsweredByAnErrorAlone: no server has its script. A proxy may say OK to
// anything.
func TestAProbeIsAnsweredByAnErrorAlone(t *testing.T) {
	t.Parallel()
	for want, client := range map[bool]interface {
		Process(ctx context.Context, cmd redis.Cmder) error
	}{
		true:  redistest.Standalone(t).Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute }),
		false: redistest.SameClient{Reply: "OK"},
	} {
		probe := wire.NewProbe(t.Context(), redistest.Prefix(t))
		_ = client.Process(t.Context(), probe)
		if answered, unknown := probe.Answered(); answered != want || (unknown == nil) != want {
			t.Errorf("a probe of %T: got answered %v, unknown %v, want answered %v", client, answered, unknown, want)
		}
	}
}
