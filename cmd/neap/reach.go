package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// joining notes that a client has connected. What a server replies before, such as to SELECT, looks like its reply to
// the first command.
func joining(joined *atomic.Bool) func(context.Context, *redis.Conn) error {
	return func(context.Context, *redis.Conn) error {
		joined.Store(true)
		return nil
	}
}

// isReply says whether an error is a server's reply. What a sentinel replied is wrapped, and none.
func isReply(err error) bool {
	_, is := err.(redis.Error) //nolint:errorlint // see above
	return is
}

// isLogin says whether Redis refuses the user's login.
func isLogin(err error) bool {
	text := replyIn(err)
	return strings.HasPrefix(text, "WRONGPASS") || strings.HasPrefix(text, "NOAUTH")
}

// replyIn is the text of a server's reply that an error has, even to another command; "" if there is none.
func replyIn(err error) string {
	if reply := redis.Error(nil); errors.As(err, &reply) {
		return reply.Error()
	}
	return ""
}

// notReached are what a server replies to a client that connects as the URL says, and what to change.
var notReached = []struct{ begins, remedy string }{
	{"WRONGPASS", "check the user and the password of the URL, or --user and REDISCLI_AUTH"},
	{"NOAUTH", "give a password in the URL, or by REDISCLI_AUTH"},
	{"ERR DB index", "change the number of the database at the end of the URL"},
	{"ERR SELECT", "leave out the number of the database at the end of the URL: a cluster has only 0"},
	{"NOPERM", "leave out the number of the database at the end of the URL, or give this user +select"},
	{"LOADING", "wait until Redis has read its data"},
	{"ERR unknown command 'sentinel'", "leave out master_name: the address in the URL is that of a Redis, and not of a sentinel"},
	{redis.Nil.Error(), "check master_name: the sentinels do not know such a master"},
}

// unreachable is the error if no command reached a server.
func unreachable(address string, err error) error {
	remedy := "check that a Redis listens at this address, and with TLS only if the URL is of rediss://; --timeout is how long neap waits"
	for _, known := range notReached {
		if text := replyIn(err); text != "" && strings.HasPrefix(text, known.begins) {
			remedy = known.remedy
			break
		}
	}
	return fmt.Errorf("%s: %w; %s", address, err, remedy)
}
