package neighbours

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-contrib/sessions"
	"github.com/gin-contrib/sessions/cookie"
	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/ginlimit"
)

func showOrders(c *gin.Context) { c.String(http.StatusOK, "orders") }

// signIn is a login that believes anybody.
func signIn(c *gin.Context) {
	s := sessions.Default(c)
	s.Set("user", c.Query("user"))
	if err := s.Save(); err != nil {
		_ = c.AbortWithError(http.StatusInternalServerError, err)
	}
}

func sessionOf(t *testing.T, h http.Handler, user string) http.Header {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/login?user="+user, nil))
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("the login of %s got %d cookies, want the session's", user, len(cookies))
	}
	return line("Cookie", cookies[0].Name+"="+cookies[0].Value)
}

func TestGinSessions(t *testing.T) {
	t.Parallel()
	h := GinSessions(atMost(t, 2), cookie.NewStore([]byte("32 bytes that nobody else knows.")), signIn, showOrders)
	first, second, alice := sessionOf(t, h, "bob"), sessionOf(t, h, "bob"), sessionOf(t, h, "alice")
	exchange(t, h,
		call{"bob", "/orders", first, "", 200},
		call{"bob, in another session and from elsewhere", "/orders", second, "192.0.2.8", 200},
		call{"bob in a third place", "/orders", second, "192.0.2.9", 429},
		call{"alice", "/orders", alice, "", 200},
		call{"nobody", "/orders", nil, "", 200},
		call{"nobody, with a session made up", "/orders", line("Cookie", "shop=bob"), "", 200},
		call{"nobody, with another", "/orders", line("Cookie", "shop=eve"), "", 429},
	)
}

// If the cookie is the key, each cookie that a client makes up is a new key.
func TestGinSessionsByCookie(t *testing.T) {
	t.Parallel()
	byCookie := gate.Tag("session", ginlimit.Key(func(c *gin.Context) (string, error) {
		if session, err := c.Cookie("shop"); err == nil {
			return session, nil
		}
		return "", gate.ErrMissing
	}))
	r := gin.New()
	r.GET("/orders", ginlimit.Middleware(gate.RateLimit(atMost(t, 1), gate.FirstOf(byCookie, gate.ByIP(nil)), nil)), showOrders)
	exchange(t, r,
		call{"one cookie", "/orders", line("Cookie", "shop=1"), "", 200},
		call{"another, from the same client", "/orders", line("Cookie", "shop=2"), "", 200},
	)
}

// The cookie store has no ids of sessions, so a key by id is a 500. A gate outside of the sessions panics.
func TestGinSessionsWrongly(t *testing.T) {
	t.Parallel()
	byID := ginlimit.Key(func(c *gin.Context) (string, error) { return sessions.Default(c).ID(), nil })
	r := gin.New()
	r.Use(gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusBadGateway) }))
	outside := r.Group("/outside", ginlimit.Middleware(told(SessionUser("user"))))
	outside.Use(sessions.Sessions("shop", cookie.NewStore([]byte("secret"))))
	outside.GET("/", showOrders)
	within := r.Group("/within", sessions.Sessions("shop", cookie.NewStore([]byte("secret"))))
	within.GET("/", ginlimit.Middleware(gate.RateLimit(atMost(t, 1), byID, nil)), showOrders)
	exchange(t, r,
		call{"by the session's id", "/within/", nil, "", 500},
		call{"outside of the sessions: sessions.Default panics", "/outside/", nil, "", 502},
	)
}
