package neighbours

import (
	"github.com/gin-contrib/sessions"
	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/ginlimit"
)

// SessionUser is the key by the user that the login has put into the session. It
// returns gate.ErrMissing if nobody has signed in. Do not key by the session itself: a
// client can drop its cookie, and each new session would have a limit of its own. In
// the cookie store sessions have no id at all.
func SessionUser(field string) gate.Key {
	return gate.Tag("user", ginlimit.Key(func(c *gin.Context) (string, error) {
		if user, ok := sessions.Default(c).Get(field).(string); ok && user != "" {
			return user, nil
		}
		return "", gate.ErrMissing
	}))
}

// GinSessions limits each user, and the clients that have not signed in by their
// address. The sessions stand outside of the gate: without them sessions.Default panics.
func GinSessions(limiter *limit.Limiter, store sessions.Store, login, show gin.HandlerFunc) *gin.Engine {
	perUser := gate.RateLimit(limiter, gate.FirstOf(SessionUser("user"), gate.ByIP(nil)), nil)
	r := gin.New()
	r.Use(gin.Recovery(), sessions.Sessions("shop", store))
	r.POST("/login", login)
	r.GET("/orders", ginlimit.Middleware(perUser), show)
	return r
}
