package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const count = `return redis.call('INCRBY', KEYS[1], 1)`

// command is a command as clients send it.
func command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// Each fault looks to the client as its name says: what was answered before
// arrives, the rest never does. The server has executed the command each time.
func TestProxyLosesReplies(t *testing.T) {
	t.Parallel()
	s := Standalone(t)
	rdb := s.Client(t)
	for name, c := range map[string]struct {
		how  Fault
		want error
	}{
		"EOF":     {EOF, io.EOF},
		"Reset":   {Reset, syscall.ECONNRESET},
		"Silence": {Silence, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, key := s.Proxy(t), s.Prefix(t)
			p.Lose(c.how, 2, "EVAL")
			for i := range 3 {
				conn, err := p.Dial(t.Context(), "tcp", s.Addr())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				fmt.Fprint(conn, command("SET", key, strconv.Itoa(i), "PX", "60000"))
				if line, err := in.ReadString('\n'); line != "+OK\r\n" {
					t.Fatalf("the first reply: got %q, %v, want \"+OK\\r\\n\"", line, err)
				}
				fmt.Fprint(conn, command("EVAL", count, "1", key)+command("GET", key))
				if i == 2 {
					if line, err := in.ReadString('\n'); line != ":3\r\n" {
						t.Errorf("the reply after two that were lost: got %q, %v, want \":3\\r\\n\"", line, err)
					}
					continue
				}
				wait := time.Minute
				if c.how == Silence {
					wait = time.Second
				}
				if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
					t.Fatal(err)
				}
				if line, err := in.ReadString('\n'); line != "" || !errors.Is(err, c.want) {
					t.Errorf("a lost reply is %q, %v; want %v", line, err, c.want)
				}
				Await(t, time.Minute, "the server to count it", func() bool {
					n, err := rdb.Get(t.Context(), key).Int()
					return err == nil && n == i+1
				})
			}
			if p.Forwarded("eval") != 3 || p.Lost() != 2 {
				t.Errorf("%d were forwarded and %d lost, want 3 and 2", p.Forwarded("eval"), p.Lost())
			}
		})
	}
}

func TestProxyPassesErrors(t *testing.T) {
	t.Parallel()
	s := Standalone(t)
	p := s.Proxy(t)
	rdb := s.Client(t, func(o *redis.Options) { o.Dialer = p.Dial })
	p.Lose(EOF, 1, "evalsha")
	err := rdb.EvalSha(t.Context(), strings.Repeat("0", 40), []string{Prefix(t)}).Err()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") || p.Lost() != 0 {
		t.Errorf("an EVALSHA that ran nothing: got %v, and %d lost, want NOSCRIPT and 0", err, p.Lost())
	}
}

// TestProxyAnswers itself, before and after the server has executed a command, in
// the order of a pipeline.
func TestProxyAnswers(t *testing.T) {
	t.Parallel()
	s := Standalone(t)
	p := s.Proxy(t)
	rdb := s.Client(t, func(o *redis.Options) { o.Dialer = p.Dial })
	for when, want := range map[When]string{Before: "2", After: "3"} {
		key := Prefix(t)
		p.Answer("-upstream failure", when, 1, "eval")
		p.ThenAnswer("-ERR away", when, 0, "eval")
		pipe := rdb.Pipeline()
		get := []*redis.Cmd{pipe.Do(t.Context(), "get", key)}
		for range 3 {
			get = append(get, pipe.Eval(t.Context(), "redis.call('INCRBY', KEYS[1], 1) redis.call('PEXPIRE', KEYS[1], 60000) return 7", []string{key}))
		}
		last := pipe.Get(t.Context(), key)
		_, _ = pipe.Exec(t.Context()) // each command has its own error
		for i, cmd := range get {
			n, err := cmd.Int()
			if want := []string{"redis: nil", "upstream failure", "<nil>", "<nil>"}[i]; fmt.Sprint(err) != want || err == nil && n != 7 {
				t.Errorf("%v, command %d: got %d, %v, want %s", when, i, n, err, want)
			}
		}
		if last.Val() != want {
			t.Errorf("%v: the server counted to %q, %v, want %s", when, last.Val(), last.Err(), want)
		}
	}
}

// Replies of every shape pass unchanged.
func TestProxyPassesEveryShape(t *testing.T) {
	t.Parallel()
	s := Standalone(t)
	p := s.Proxy(t)
	key := s.Prefix(t)
	for _, protocol := range []int{2, 3} {
		through := s.Client(t, func(o *redis.Options) { o.Dialer, o.Protocol = p.Dial, protocol })
		straight := s.Client(t, func(o *redis.Options) { o.Protocol = protocol })
		for _, script := range []string{
			`return 1`, `return 'text'`, `return ''`, `return false`, `return {}`, `return {1, {'two', {3}}, 'four'}`,
			`return redis.status_reply('FINE')`, `return redis.error_reply('WRONG it is')`,
			`return {double = 1.5}`, `redis.setresp(3); return {map = {a = 1, b = {2, 3}}}`,
			`redis.setresp(3); return {set = {a = true}}`, `redis.setresp(3); return true`,
			`redis.setresp(3); return {big_number = '123456789012345678901234567890'}`,
			`redis.setresp(3); return {verbatim_string = {format = 'txt', string = 'some'}}`,
			`return string.rep('x', 100000)`, `return 'a\r\n$5\r\n'`,
		} {
			want, wantErr := straight.Eval(t.Context(), script, []string{key}).Result()
			got, err := through.Eval(t.Context(), script, []string{key}).Result()
			if show(got, err) != show(want, wantErr) {
				t.Errorf("RESP%d %s: got %v, %v, want %v, %v as straight", protocol, script, got, err, want, wantErr)
			}
		}
	}
	sub := s.Admin(t, func(o *redis.Options) { o.Dialer = p.Dial }).Subscribe(t.Context(), key)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Admin(t).Publish(t.Context(), key, "hello").Err(); err != nil {
		t.Fatal(err)
	}
	if msg, err := sub.ReceiveMessage(t.Context()); err != nil || msg.Payload != "hello" {
		t.Errorf("a published message: got %v, %v, want hello", msg, err)
	}
}
