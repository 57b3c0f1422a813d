package gatehttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/neap-go/neap/internal/gatehttp"
)

// An adapter lets the handler write through the recorder, and gives the gate what the
// client saw.
func ExampleNewRecorder() {
	w := httptest.NewRecorder()
	rec := gatehttp.NewRecorder(w.Header(), http.MethodPost, 1024)
	http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "order 17")
	}).ServeHTTP(rec.Wrap(w), httptest.NewRequest(http.MethodPost, "/orders", nil))

	reply := rec.Reply()
	fmt.Println(reply.Status, string(reply.Body), reply.Partial)
	// Output: 201 order 17 false
}
