package quickstart

import (
	"fmt"
	"math"
	"net/url"
	"strconv"

	"github.com/neap-go/neap/core/gate"
)

// number is the whole number, from least to most, that a query has once.
func number(rawQuery, name string, least, most int64) (n int64, ok bool) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil || len(query[name]) != 1 {
		return 0, false
	}
	n, err = strconv.ParseInt(query.Get(name), 10, 64)
	return n, err == nil && n >= least && n <= most
}

// costOf is the n of the query. What the bucket can never grant, the gate
// refuses by itself. Only in a demo does a request say what it costs.
func costOf(r gate.Request) (int64, error) {
	n, ok := number(r.RawQuery(), "n", 1, math.MaxInt64)
	if !ok {
		return 0, gate.Refuse(400, "The query has no whole number n of at least 1")
	}
	return n, nil
}

// mostTokens is how many tokens a request may say that it used.
const mostTokens = 1_000_000

// estimateOf is the estimate of the query. Only in a demo does a request say what it will use.
func estimateOf(r gate.Request) (int64, error) {
	n, ok := number(r.RawQuery(), "estimate", 0, mostTokens)
	if !ok {
		return 0, gate.Refuse(400, "The query has no whole number estimate of at least 0")
	}
	return n, nil
}

// asking is a key for requests whose query has a number up to most. What it
// refuses has taken nothing.
func asking(key gate.Key, name string, most int64) gate.Key {
	return func(r gate.Request) (string, error) {
		subject, err := key(r)
		if _, ok := number(r.RawQuery(), name, 0, most); !ok && err == nil {
			return "", gate.Refuse(400, fmt.Sprintf("The query has no whole number %s from 0 to %d", name, most))
		}
		return subject, err
	}
}

// allowing is asking, but for a query that may have no such number.
func allowing(key gate.Key, name string, most int64) gate.Key {
	asked := asking(key, name, most)
	return func(r gate.Request) (string, error) {
		if query, err := url.ParseQuery(r.RawQuery()); err == nil && !query.Has(name) {
			return key(r)
		}
		return asked(r)
	}
}
