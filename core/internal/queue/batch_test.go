package queue

import "testing"

func TestResultsOfABatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls []Result
		want  Result
	}{
		{[]Result{Ignored}, Ignored},
		{[]Result{Answered, Ignored}, Answered},
		{[]Result{Answered, Unsent}, Unsent},
		{[]Result{Unanswered, Unsent, Answered}, Unanswered},
		{[]Result{Unknown}, Unknown},
		{[]Result{Unknown, Unknown, Answered}, Unknown},
		{[]Result{Unknown, Answered}, Answered},
		{[]Result{Unknown, Ignored, Ignored}, Answered},
		{[]Result{Unknown, Unknown, Unanswered}, Unanswered},
		{[]Result{Unknown, Unknown, Unsent}, Unsent},
	} {
		var all Results
		for _, r := range c.calls {
			all.Add(r)
		}
		if got := all.Batch(); got != c.want {
			t.Errorf("%v: got %v, want %v", c.calls, got, c.want)
		}
	}
}
