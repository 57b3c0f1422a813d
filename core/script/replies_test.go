package script_test

import (
	"errors"
	"testing"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	plain := script.New("next.lua", "return 1")
	positive := func(n int64) bool { return n > 0 }
	isOK := func(reply any) bool { return reply == "OK" }
	for name, c := range map[string]struct {
		script *script.Script
		gives  []any
		never  []any
	}{
		"whatever comes": {plain, []any{int64(-1), "OK", nil, []any{}, 1.5, true, map[any]any{}}, nil},
		"numbers":        {plain.Replies(positive, nil), []any{int64(1)}, []any{int64(0), "OK", nil, []any{int64(1)}, 1.5, true}},
		"others":         {plain.Replies(nil, isOK), []any{"OK"}, []any{int64(1), "", nil, []any{"OK"}, map[any]any{}}},
		"both":           {plain.Replies(positive, isOK), []any{int64(1), "OK"}, []any{int64(-1), "FINE", nil}},
		"nothing":        {plain.Replies(nil, nil), nil, []any{int64(1), "OK", nil}},
		"the last says":  {plain.Replies(nil, isOK).Essential().Replies(positive, nil).Batched(), []any{int64(1)}, []any{"OK"}},
	} {
		ask := func(reply any) (any, error) {
			return newRunner(t, redistest.SameClient{Reply: reply}, &script.Options{Budget: time.Minute}).Run(t.Context(), c.script, []string{"k"})
		}
		for _, reply := range c.gives {
			if _, err := ask(reply); err != nil {
				t.Errorf("%s: the reply %v: got %v, want no error", name, reply, err)
			}
		}
		for _, reply := range c.never {
			got, err := ask(reply)
			failure, is := errors.AsType[*script.Error](err)
			if got != nil || !is || !errors.Is(err, script.ErrMaybeExecuted) || failure.Answered() {
				t.Errorf("%s: the reply %v: got %v, %v, want ErrMaybeExecuted that is no answer", name, reply, got, err)
			}
		}
	}
	if _, err := newRunner(t, redistest.SameClient{Reply: "OK"}, &script.Options{Budget: time.Minute}).Run(t.Context(), plain, []string{"k"}); err != nil {
		t.Errorf("the script that the others are copies of: got %v, want no error", err)
	}
}
