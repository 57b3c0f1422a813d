package redistest

import (
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestStartEnds(t *testing.T) {
	t.Parallel()
	require(t)
	addr, end, err := Start("--databases", "3")
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr, DB: 2})
	defer rdb.Close()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("a database that an argument asks for: got %v, want no error", err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Fatal("a server that was ended accepts connections, want none")
	}
}
