package script_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing/fstest"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// highest keeps the highest score of a day, which Redis alone cannot do in one
// command.
var highest = script.New("highest.lua", `
local key, score, ttl = KEYS[1], ARGV[1] + 0, ARGV[2]
local best = (redis.call('GET', key) or 0) + 0
if score > best then
  redis.call('SET', key, score, 'PX', ttl)
  best = score
end
return best`)

func ExampleNewRunner() {
	rdb := redistest.Embedded() // stands for your go-redis client

	runner, err := script.NewRunner(rdb, &script.Options{Budget: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	for _, score := range []int{7, 3, 12} {
		best, err := runner.Run(context.Background(), highest, []string{"score:{user-17}"}, score, 86_400_000)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(best)
	}
	// Output:
	// 7
	// 7
	// 12
}

func ExampleError() {
	runner, err := script.NewRunner(redistest.Embedded(), &script.Options{Budget: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	sell := script.New("sell.lua", "return redis.error_reply('SOLDOUT no units are left')")
	_, err = runner.Run(context.Background(), sell, []string{"units:{ticket}"})
	var failure *script.Error
	switch {
	case errors.Is(err, script.ErrMaybeExecuted):
		fmt.Println("it may have run: ask before you call it again")
	case errors.As(err, &failure):
		fmt.Println(failure.Script, failure.Class)
	}
	// Output: sell.lua script: failed
}

func ExampleNew() {
	s := script.New("one.lua", "return 1")
	fmt.Println(s.Name(), s.SHA())
	// Output: one.lua e0e1f9fabfc9d4800c877a703b823ac0578ff8db
}

func ExampleScript_Decode() {
	s := script.New("take.lua", "return {true, 3, 1500}")
	reply := []any{int64(1), int64(3), int64(1500)} // as Run returns what take.lua replies
	var answer struct {
		Granted bool
		Left    int
		Retry   time.Duration `script:"ms"`
	}
	if err := s.Decode(reply, &answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Granted, answer.Left, answer.Retry)
	// Output: true 3 1.5s
}

func ExampleFromFS() {
	files := fstest.MapFS{ // stands for an embed.FS: //go:embed lua/*.lua
		"lua/one.lua": {Data: []byte("return 1")},
	}
	s := script.FromFS(files, "lua/one.lua")
	fmt.Println(s.Name(), s.SHA())
	// Output: one.lua e0e1f9fabfc9d4800c877a703b823ac0578ff8db
}
