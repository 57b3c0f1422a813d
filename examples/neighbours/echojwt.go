package neighbours

import (
	"fmt"

	"github.com/golang-jwt/jwt/v5"
	echojwt "github.com/labstack/echo-jwt/v4"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/echolimit"
)

// TokenSubject is the key by the subject of the token that echo-jwt has verified. Do not key
// by the Authorization header: each new token of a user would have a limit of its
// own, and outside of echo-jwt anybody can write any subject into one.
func TokenSubject() gate.Key {
	return gate.Tag("subject", echolimit.Key(func(c echo.Context) (string, error) {
		token, ok := c.Get("user").(*jwt.Token) // under echo-jwt's ContextKey
		if !ok {
			return "", fmt.Errorf("%w: TokenSubject is mounted outside of echo-jwt", gate.ErrWiring)
		}
		subject, err := token.Claims.GetSubject()
		if err != nil || subject == "" {
			return "", gate.Refuse(401, "The token names no subject")
		}
		return subject, nil
	}))
}

// EchoJWT limits each subject, whichever tokens it has. If several issuers
// sign, join the issuer with the subject: each may have a subject 17.
func EchoJWT(limiter *limit.Limiter, secret []byte, show echo.HandlerFunc) *echo.Echo {
	perSubject := gate.RateLimit(limiter, TokenSubject(), nil)
	e := echo.New()
	e.GET("/orders", show, echojwt.JWT(secret), echolimit.Middleware(perSubject))
	return e
}
