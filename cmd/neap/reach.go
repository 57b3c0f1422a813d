package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// reach returns an error if no command of the client reaches its server. What a server replies while go-redis connects,
// such as to SELECT, looks like its reply to the first command. So that is an ECHO, which a server refuses for two reasons
// only: it is busy, or the user may not. It refuses a PING also if it cannot write to its disk.
func (a *app) reach(ctx context.Context, client redis.UniversalClient, address string) error {
	within, cancel := a.within(ctx)
	defer cancel()
	err := client.Echo(within, "neap").Err()
	if err == nil || isReply(err) && (isBusy(err) || strings.Contains(strings.ToLower(err.Error()), "echo")) {
		return nil
	}
	if timeout := net.Error(nil); replyIn(err) == "" && (!errors.As(err, &timeout) || !timeout.Timeout()) {
		if why := a.diagnosed(ctx, client); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
	}
	return unreachable(address, err)
}

// diagnosed is what a server says before it hangs up, or nil.
func (a *app) diagnosed(ctx context.Context, client redis.UniversalClient) error {
	st, err := a.open(client)
	if err != nil {
		return nil
	}
	within, cancel := a.within(ctx)
	defer cancel()
	return st.Diagnose(within)
}

// isReply says whether an error is a server's reply. The reply of a sentinel is wrapped, and does not count.
func isReply(err error) bool {
	_, is := err.(redis.Error) //nolint:errorlint // see above
	return is
}

// isLogin says whether Redis refuses the user's login.
func isLogin(err error) bool {
	text := replyIn(err)
	return strings.HasPrefix(text, "WRONGPASS") || strings.HasPrefix(text, "NOAUTH")
}

// replyIn is the text of a server's reply that an error has, even of a sentinel; "" if there is none.
func replyIn(err error) string {
	if reply := redis.Error(nil); errors.As(err, &reply) {
		return reply.Error()
	}
	return ""
}

// notReached has what a server or a sentinel says if it refuses a client, and the remedy for each.
var notReached = []struct{ has, remedy string }{
	{"WRONGPASS", "check the user and the password of the URL, or --user and REDISCLI_AUTH"},
	{"NOAUTH", "give a password in the URL, or by REDISCLI_AUTH"},
	{"DENIED", "or run neap on the host of the server"},
	{"DB index is out of range", "change the number of the database in the URL"},
	{"SELECT is not allowed", "leave out the number of the database in the URL: a cluster has only 0"},
	{"'select'", "leave out the number of the database in the URL, or give this user +select"},
	{"'cluster|slots'", "give this user +cluster|slots"},
	{"cluster support disabled", "leave out addr: the address in the URL is of a server that is in no cluster"},
	{"unknown command 'sentinel'", "leave out master_name: the address in the URL is that of a Redis, and not of a sentinel"},
	{redis.Nil.Error(), "check master_name: the sentinels do not know such a master"},
}

// unreachable is the error if no command reached a server.
func unreachable(address string, err error) error {
	remedy := "check that a Redis listens at this address, and with TLS only if the URL is of rediss://; --timeout is how long neap waits"
	if replyIn(err) != "" {
		remedy = "the server replies, but not as it must for this URL"
	}
	for _, known := range notReached {
		if strings.Contains(err.Error(), known.has) {
			remedy = known.remedy
			break
		}
	}
	return fmt.Errorf("%s: %w; %s", address, err, remedy)
}

// busy has the codes of a server that refuses all commands for now, and the remedy for each.
var busy = map[string]string{
	"LOADING":    "wait until Redis has read its data",
	"BUSY":       "a script or a function keeps Redis busy: SCRIPT KILL or FUNCTION KILL ends it, unless it has written",
	"MASTERDOWN": "see why this replica does not reach its master",
}

func isBusy(err error) bool { return busy[codeOf(err)] != "" }

// whenRefused is what to do about a reply that is about no right.
func whenRefused(err error) string {
	if remedy, is := busy[codeOf(err)]; is {
		return remedy
	}
	return "see the log of Redis"
}

// codeOf is the first word of a server's reply.
func codeOf(err error) string {
	code, _, _ := strings.Cut(replyIn(err), " ")
	return code
}
