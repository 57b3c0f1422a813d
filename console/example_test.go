package console_test

import (
	"crypto/subtle"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/neap-go/neap/console"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// The page shows what each limiter on the client admits and denies, and an operator can
// look up a subject of this one.
func ExampleHandler() {
	rdb := redistest.Embedded() // stands for your go-redis client
	api, err := limit.New(rdb, "api", []limit.Policy{limit.FixedWindow{Limit: 100, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	operators := func(r *http.Request) bool { // by your own login, as for other pages of operators
		_, password, _ := r.BasicAuth()
		return subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 1
	}
	mux := http.NewServeMux()
	mux.Handle("/neap/", console.Handler(rdb, operators, &console.Options{
		LookUp: console.Primitives{Limiters: []*limit.Limiter{api}},
	}))

	for _, password := range []string{"guess", "secret"} {
		r := httptest.NewRequest(http.MethodGet, "/neap/", nil)
		r.SetBasicAuth("ann", password)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 403
	// 200
}
