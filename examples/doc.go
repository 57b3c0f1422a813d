// Package examples has a directory for each scenario:
//
//   - nethttp, gin, echo, fiber: the smallest program, a limit for each address
//   - newer: the same for Echo v5, Fiber v3 and Hertz, a module of its own, for their versions
//   - neighbours: recipes beside other libraries and proxies, a module of its own, for
//     their sake; docs/neighbours.md shows them
//   - grpc: limits before and behind gRPC, and before connect-go, a module of its own
//   - quickstart: a demo, or a server to poke at, with every kind of limit
//   - cron: five processes that run a job once a tick; one is killed, another takes over
//   - cacherebuild: a hot entry of a cache that one of a thousand requests rebuilds
//   - orders: a shop that books an order once, although its process is killed before
//     it can answer; a module of its own, for its database
//   - payment: a shop that books each payment and refund once, whatever befalls the
//     callbacks of eight providers; a module of its own too
//   - guide: the scripts and tests that docs/guide shows: the usual forms, and where they break
//   - flashsale: a hundred phones, a thousand buyers and twenty thousand requests,
//     and a count from the answers of what each buyer has
//   - partner: five processes that call somebody's API, within what it allows, and stop
//     when it says so
//   - llmproxy: a proxy in front of a model that streams, with tokens and requests a minute for each
//     user and for each model: estimated, waited for, and settled to what was used
//   - sequence: order numbers that only grow, by a script of one's own, taken by eight
//     processes one at a time and in blocks
//   - usecases: proxies, API keys, plans, costs and more, as docs/recipes.md shows them
//   - unittest: tests of routes of one's own, without a server: limits, orders, callbacks, locks
package examples
