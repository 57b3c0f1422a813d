// Package behind tests every primitive behind proxies: one that answers in place of Redis,
// and HAProxy. It has nothing but tests.
package behind
