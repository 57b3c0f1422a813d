package gatetest

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// kept is everything about a request and its response that a gate may keep.
type kept struct {
	method, host, path, query, route, id, rest, key string
	lines, all                                      []string
	body                                            []byte
	reply                                           *gate.Reply
}

func keep(q gate.Request, key gate.Key) *kept {
	k := &kept{
		method: q.Method(), host: q.Host(), path: q.Path(), query: q.RawQuery(), route: q.Route(),
		id: q.Param("id"), rest: q.Param("..."), lines: q.Header("X-Name"),
	}
	for name, value := range q.Headers() {
		k.all = append(k.all, name, value)
	}
	k.body, _ = q.Body(1 << 10)
	k.key, _ = key(q)
	return k
}

// copied copies every byte.
func (k *kept) copied() *kept {
	c := *k
	for _, s := range []*string{&c.method, &c.host, &c.path, &c.query, &c.route, &c.id, &c.rest, &c.key} {
		*s = strings.Clone(*s)
	}
	c.lines, c.all = cloneAll(k.lines), cloneAll(k.all)
	c.body = append([]byte(nil), k.body...)
	if k.reply != nil {
		r := *k.reply
		r.Body = append([]byte(nil), r.Body...)
		r.Header = nil
		for _, f := range k.reply.Header {
			r.Header = append(r.Header, gate.Field{Name: strings.Clone(f.Name), Value: strings.Clone(f.Value), Add: f.Add})
		}
		c.reply = &r
	}
	return &c
}

func cloneAll(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, strings.Clone(s))
	}
	return out
}

// keptStrings: what a gate got from a request stays the same after the server has used
// its memory for other requests.
func keptStrings(t *testing.T, d Driver) {
	var mu sync.Mutex
	var given, copies []*kept
	key := gate.Join(
		gate.Key(func(q gate.Request) (string, error) { return d.Key("X-Name")(q) }),
		gate.ByParam("id"))
	g := enter(func(q gate.Request) gate.Pass {
		k := keep(q, key)
		k.body, _ = q.Body(1 << 10)
		return gate.Pass{
			Capture: 1 << 10,
			Leave: func(r *gate.Reply) {
				k.reply = r
				mu.Lock()
				defer mu.Unlock()
				given, copies = append(given, k), append(copies, k.copied())
			},
		}
	})
	handler := func(x Exchange) error {
		x.SetHeader("X-Handler", strings.Clone(x.Param("id")))
		body, err := x.Body()
		if err != nil {
			t.Error(err)
		}
		return say(200, string(body))(x)
	}
	address := d.Serve(t, App{Routes: []Route{
		{Method: "POST", Pattern: "/users/{id}", Gates: []gate.Gate{g}, Handler: handler},
		{Method: "POST", Pattern: "/files/{...}", Gates: []gate.Gate{g}, Handler: handler},
	}})
	c := dial(t, address)
	const requests = 200
	for i := range requests {
		name := fmt.Sprintf("%c%03d", 'a'+i%26, i)
		for _, target := range []string{"/users/" + name, "/files/%41/" + name} {
			c.post(target+"?q="+name, "body of "+name, "Host: "+name+".example", "X-Name: "+name, "X-Name: "+name+"2")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(given) != 2*requests {
		t.Fatalf("the gate left %d requests, want %d", len(given), 2*requests)
	}
	for i := range given {
		if !reflect.DeepEqual(given[i].copied(), copies[i]) {
			t.Fatalf("request %d changed to\n\t%+v\nwant it unchanged\n\t%+v", i, given[i], copies[i])
		}
	}
	first := copies[0]
	if first.id != "a000" || string(first.body) != "body of a000" || first.host != "a000.example" || !strings.Contains(first.key, "a000") {
		t.Errorf("the first request was %+v, want a000 in all its parts", first)
	}
}
