// Package store holds what limiters, locks, guards and stock on one Redis share: options,
// circuit breakers, the log of outages, and observers.
//
// You need it only for what differs from the defaults:
//
//	st, err := store.Open(rdb, &store.Options{Prefix: "shop"})
//	if err != nil {
//		return err
//	}
//	limiter, err := limit.New(st, "api", policies, nil)
//	locker, err := lock.New(st, "orders", nil)
//
// Every constructor takes a [Store] or a go-redis client. A client that is given to
// several of them is one store to all, without a line of code: see [Of].
package store
