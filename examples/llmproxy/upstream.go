package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// upstream is a model that does what the last message says, a query such as "words=40&thinks=100":
//
//   - words=40 answers with so many words, each of one token
//   - thinks=100 uses so many tokens more than max_tokens allows
//   - held=1 waits for release before the last word
//   - stalls=1 never says the last word
//   - breaks=1 breaks the connection off before it
//   - fails=1 answers 502
type upstream struct {
	pace     time.Duration // from word to word
	released chan struct{}
	release  func()
}

func newUpstream(pace time.Duration) *upstream {
	u := &upstream{pace: pace, released: make(chan struct{})}
	u.release = sync.OnceFunc(func() { close(u.released) })
	return u
}

// word has four letters, since a token has four bytes.
const word = "neap"

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) == 0 {
		http.Error(w, "this is no question", http.StatusBadRequest)
		return
	}
	var text string
	_ = json.Unmarshal(q.Messages[len(q.Messages)-1].Content, &text) // what is no text says nothing
	says, _ := url.ParseQuery(text)
	if says.Get("fails") != "" {
		http.Error(w, "the model is overloaded", http.StatusBadGateway)
		return
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(says.Get(name), 10, 64) // 0 if it is none
		return n
	}
	words := number("words")
	if q.MaxTokens > 0 {
		words = min(words, q.MaxTokens)
	}
	used := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`,
		q.prompt(), words+number("thinks"), q.prompt()+words+number("thinks"))
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "{\n  \"choices\": [{\"message\": {\"content\": \"%d words\"}}],\n  \"usage\": %s\n}\n", words, used)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range words {
		var wait <-chan struct{} // nil waits for ever
		switch last := i == words-1; {
		case last && says.Get("held") != "":
			wait = u.released
		case last && says.Get("stalls") != "":
		case last && says.Get("breaks") != "":
			panic(http.ErrAbortHandler)
		default:
			wait = after(u.pace)
		}
		select {
		case <-wait:
		case <-r.Context().Done():
			return
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
		_ = http.NewResponseController(w).Flush() // whoever has gone ends the context
	}
	if q.StreamOptions != nil && q.StreamOptions.IncludeUsage {
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":%s}\n\n", used)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// after closes what it returns when d has passed.
func after(d time.Duration) <-chan struct{} {
	passed := make(chan struct{})
	time.AfterFunc(d, func() { close(passed) })
	return passed
}
