package examples_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

var (
	session = regexp.MustCompile("(?s)```console\n(.*?)```")
	word    = regexp.MustCompile(`'[^']*'|"\$\(cat [^)]*\)"|\S+`)
)

// follow types what a page types into redis-cli, on a server of its own.
func follow(t *testing.T, page string) {
	t.Helper()
	var rdb *redis.Client
	for _, m := range session.FindAllStringSubmatch(read(t, page), -1) {
		if rdb == nil {
			rdb = redistest.NewStandalone(t).Admin(t)
		}
		for _, step := range strings.Split(m[1], "$ redis-cli ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			args := arguments(t, command)
			reply, err := rdb.Do(t.Context(), args...).Result()
			var refused redis.Error
			if errors.As(err, &refused) && !errors.Is(err, redis.Nil) {
				reply = refused
			} else if err != nil && !errors.Is(err, redis.Nil) {
				t.Fatalf("%s: got %v, want a reply", command, err)
			}
			if got := printed(reply); !matches(want, got) {
				t.Fatalf("%s: got %s\nwant, as the page says: %s", command, got, want)
			}
		}
	}
}

// arguments reads what stands behind redis-cli.
func arguments(t *testing.T, command string) (args []any) {
	t.Helper()
	words := word.FindAllString(command, -1)
	for i, w := range words {
		words[i] = strings.Trim(w, "'")
		if file, ok := strings.CutPrefix(w, `"$(cat `); ok {
			words[i] = read(t, "../"+strings.TrimSuffix(file, `)"`))
		}
	}
	if words[0] == "--eval" {
		keys, values := words[2:], []string(nil)
		if comma := slices.Index(keys, ","); comma >= 0 {
			keys, values = keys[:comma], keys[comma+1:]
		}
		words = slices.Concat([]string{"EVAL", read(t, "../"+words[1]), strconv.Itoa(len(keys))}, keys, values)
	}
	for _, w := range words {
		args = append(args, w)
	}
	return args
}

// printed is a reply as redis-cli shows it to people.
func printed(reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "(nil)"
	case redis.Error:
		return "(error) " + reply.Error()
	case int64:
		return fmt.Sprintf("(integer) %d", reply)
	case []any:
		lines := make([]string, len(reply))
		for i, one := range reply {
			lines[i] = fmt.Sprintf("%d) %s", i+1, printed(one))
		}
		return strings.Join(lines, "\n")
	case string:
		if reply == "OK" {
			return reply
		}
		return fmt.Sprintf("%q", reply)
	}
	return fmt.Sprint(reply)
}

// matches compares up to where the page leaves the rest of a number open.
func matches(page, got string) bool {
	page = strings.TrimSpace(page)
	if start, _, open := strings.Cut(page, "…"); open {
		return strings.HasPrefix(got, start)
	}
	return page == got
}
