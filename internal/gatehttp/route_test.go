package gatehttp_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
)

func TestParam(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ route, path, name, want string }{
		{"/users/{id}", "/users/7", "id", "7"},
		{"/users/{id}", "/users/a%2Fb%2520", "id", "a/b%20"},
		{"/users/{id}", "/users/100%", "id", "100%"},
		{"/users/{id}", "/users/", "id", ""},
		{"/users/{id}", "/users/7/", "id", "7"},
		{"/users/{id}", "/users/7", "none", ""},
		{"/users/{id}", "/users/7", "", ""},
		{"/users/{id}", "/others/7", "id", ""},
		{"/users/{id}", "", "id", ""},
		{"/caf\u00e9/{id}", "/caf%C3%A9/7", "id", "7"},
		{"/{a}/{b}", "/1/2", "b", "2"},
		{"/{a}//{b}", "/1//2", "b", "2"},
		{"/v{version}/x", "/v2/x", "version", "2"},
		{"/v{version}/x", "/w2/x", "version", ""},
		{"/files/{...}", "/files/a//b%20c/", "...", "a//b c/"},
		{"/files/{...}", "/files", "...", ""},
		{"/files/{...}", "/files/a", "rest", ""},
		{"/{id}/{...}", "/7/a/b", "id", "7"},
		{"", "/users/7", "id", ""},
	} {
		if got := gatehttp.Param(c.route, c.path, c.name); got != c.want {
			t.Errorf("Param(%q, %q, %q) is %q, want %q", c.route, c.path, c.name, got, c.want)
		}
	}
}

func FuzzParam(f *testing.F) {
	f.Add("alice", "7")
	f.Add("a/b%2F", "..")
	f.Fuzz(func(t *testing.T, user, post string) {
		path := "/users/" + url.PathEscape(user) + "/posts/" + url.PathEscape(post)
		const route = "/users/{user}/posts/{post}"
		if got := gatehttp.Param(route, path, "user"); got != user {
			t.Errorf("%s: got the user %q, want %q", path, got, user)
		}
		if got := gatehttp.Param(route, path, "post"); got != post {
			t.Errorf("%s: got the post %q, want %q", path, got, post)
		}
		rest := gatehttp.Param("/users/{...}", path, adapter.Wildcard)
		if want := user + "/posts/" + post; rest != want {
			t.Errorf("%s: got the rest %q, want %q", path, rest, want)
		}
		_ = gatehttp.Param(user, post, strings.Trim(post, "/"))
	})
}
