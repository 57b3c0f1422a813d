package neighbours

import (
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	echojwt "github.com/labstack/echo-jwt/v4"
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echolimit"
)

var tokenSecret = []byte("known to the issuer")

// bearer signs a token. The id tells two tokens of one subject apart.
func bearer(t *testing.T, secret, subject, id string) http.Header {
	t.Helper()
	claims := jwt.RegisteredClaims{Subject: subject, ID: id, ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return line("Authorization", "Bearer "+token)
}

func echoOrders(c echo.Context) error { return c.String(http.StatusOK, "orders") }

func TestEchoJWT(t *testing.T) {
	t.Parallel()
	ours, forged := string(tokenSecret), "made up"
	exchange(t, EchoJWT(atMost(t, 2), tokenSecret, echoOrders),
		call{"a forged token", "/orders", bearer(t, forged, "bob", "1"), "", 401},
		call{"a forged token", "/orders", bearer(t, forged, "bob", "2"), "", 401},
		call{"bob, whose limit the forged ones did not use up", "/orders", bearer(t, ours, "bob", "1"), "", 200},
		call{"bob's next token", "/orders", bearer(t, ours, "bob", "2"), "", 200},
		call{"bob's third token", "/orders", bearer(t, ours, "bob", "3"), "", 429},
		call{"alice", "/orders", bearer(t, ours, "alice", "1"), "", 200},
		call{"a token without a subject", "/orders", bearer(t, ours, "", "1"), "", 401},
		call{"no token", "/orders", nil, "", 401},
	)
}

// Other keys, and TokenSubject outside of echo-jwt, do what the recipe warns of.
func TestEchoJWTWrongly(t *testing.T) {
	t.Parallel()
	ours := string(tokenSecret)
	first, second := bearer(t, ours, "bob", "1"), bearer(t, ours, "bob", "2")
	mount := func(key gate.Key, outside bool) *echo.Echo {
		e := echo.New()
		limited := echolimit.Middleware(gate.RateLimit(atMost(t, 1), key, nil))
		if outside {
			e.Use(limited, echojwt.JWT(tokenSecret))
		} else {
			e.Use(echojwt.JWT(tokenSecret), limited)
		}
		e.GET("/orders", echoOrders)
		return e
	}
	exchange(t, mount(gate.ByHeader("Authorization"), false),
		call{"a token", "/orders", first, "", 200}, call{"the same", "/orders", first, "", 429},
		call{"by the header each token has a limit of its own", "/orders", second, "", 200})
	exchange(t, mount(gate.ByValue("user", "user"), false),
		call{"what echo-jwt stores is a token, which names nobody by itself", "/orders", first, "", 500})
	exchange(t, mount(TokenSubject(), true),
		call{"outside of echo-jwt there is no token yet", "/orders", first, "", 500})
	exchange(t, mount(TokenSubject(), false),
		call{"as it should be", "/orders", first, "", 200}, call{"another token", "/orders", second, "", 429})
}
