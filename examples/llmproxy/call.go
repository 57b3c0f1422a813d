package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// call is a request of a user: what it may cost, and what it has cost so far.
type call struct {
	id, user string
	began    time.Time // when the limits had let it in; zero if they did not

	prompt, most int64       // tokens, as they were estimated
	sent         atomic.Bool // to the upstream
	failed       bool        // the upstream answered with an error, which costs nothing
	delivered    int64       // tokens that were streamed so far
	reported     int64       // tokens, as the upstream reports them in the end
}

type callKey struct{}

// String is the user, for gate.ByValue.
func (c *call) String() string { return c.user }

// callOf is that of a context, or of a request as a gate sees it.
func callOf(of interface{ Value(key any) any }) *call { return of.Value(callKey{}).(*call) }

// authenticate stands for yours: here a key is "sk-" and the user's name. When the call has ended and is
// settled, ended hears of it.
func authenticate(ended func(*call), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer {
			key = r.Header.Get("X-Api-Key")
		}
		user, known := strings.CutPrefix(key, "sk-")
		if !known || user == "" {
			http.Error(w, "send Authorization: Bearer sk-<name>, or X-Api-Key", http.StatusUnauthorized)
			return
		}
		c := &call{id: r.Header.Get("X-Request-Id"), user: user}
		defer ended(c) // also if the proxy panics, as it does if the client goes away
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

// maxBody is the longest question, in bytes.
const maxBody = 8 << 20

// defaultMost is how many tokens an answer is expected to have if max_tokens is missing.
const defaultMost = 500

// question is what the proxy reads of the body of POST /v1/chat/completions.
type question struct {
	Model         string         `json:"model"`
	MaxTokens     int64          `json:"max_tokens"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options"`
	Messages      []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// prompt is a token for four bytes, which is crude.
func (q *question) prompt() int64 {
	bytes := 0
	for _, m := range q.Messages {
		bytes += len(m.Content)
	}
	return tokens(bytes)
}

func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

// estimate is the prompt, and all that the answer may have.
func (c *call) estimate(q question) int64 {
	c.prompt, c.most = q.prompt(), cmp.Or(q.MaxTokens, defaultMost)
	return c.prompt + c.most
}

// used is what the call is charged in the end: what the upstream reports. If the stream has ended before that, since
// the client hung up or the upstream broke off, it is the prompt and what was delivered. It is nothing only if the upstream
// got nothing or answered with an error.
func (c *call) used() int64 {
	switch {
	case !c.sent.Load() || c.failed:
		return 0
	case c.reported > 0:
		return c.reported
	}
	return c.prompt + c.delivered
}

// hear takes an event of the stream, or an answer that is none.
func (c *call) hear(event []byte) {
	var e struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
		} `json:"choices"`
		Usage struct {
			TotalTokens int64 `json:"total_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(event, &e) != nil {
		return // an empty line, a comment, [DONE]
	}
	for _, choice := range e.Choices {
		c.delivered += tokens(len(choice.Delta.Content))
	}
	c.reported = max(c.reported, e.Usage.TotalTokens)
}
