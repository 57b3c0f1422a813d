package lua_test

import (
	"fmt"

	"github.com/neap-go/neap/lua"
)

// The script of one policy is a file, too.
func ExampleLone() {
	fmt.Println(lua.Lone("window").Name)
	// Output: limit_window.lua
}

// The order of the kinds makes no difference.
func ExampleTake() {
	j := lua.Take(false, false, "window", "bucket")
	fmt.Println(j.Name)
	fmt.Println(j.Where(1)) // of line 1
	// Output:
	// limit_take(bucket window)
	// limits/bucket.lua:1
}

func ExampleSettle() {
	fmt.Println(lua.Settle("log", "log").Name)
	// Output: limit_settle(log)
}

func ExampleMade() {
	lua.Take(true, false, "window")
	for _, j := range lua.Made() {
		if j.Name == "limit_take(window ban)" {
			fmt.Println("made")
		}
	}
	// Output: made
}
