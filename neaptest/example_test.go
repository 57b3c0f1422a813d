package neaptest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/neaptest"
)

// With Fiber a Send is one line.
func ExampleSend_fiber() {
	app := fiber.New()
	app.Post("/login", func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusNoContent) })

	var shop neaptest.Send = func(r *http.Request) (*http.Response, error) { return app.Test(r, -1) }

	response, err := shop(httptest.NewRequest(http.MethodPost, "/login", nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output: 204
}

// With net/http a Send is a call of Handler.
func ExampleHandler() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

	shop := neaptest.Handler(mux)
	response, err := shop(httptest.NewRequest(http.MethodPost, "/login", nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output: 204
}
