package hertzlimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/hertzlimit"
)

var streams = server.WithStreamBody(true)

// bodies is an endpoint that answers with the length and the error of a body.
func bodies(max int64) text {
	return func(q gate.Request) string {
		body, err := q.Body(max)
		return fmt.Sprint(len(body), " ", err)
	}
}

// reading serves an endpoint behind middleware.
func reading(t testing.TB, e gate.Endpoint, around app.HandlerFunc, opts ...config.Option) (address string) {
	t.Helper()
	return serving(t, func(h *server.Hertz) {
		if around != nil {
			h.Use(around)
		}
		h.POST("/detail", hertzlimit.Handler(e))
	}, opts...)
}

// A streamed body that ends early does not pass for a whole one.
func TestStreamedBodyBreaksOff(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"EndsEarly":       post(200_000, long(100_000)),
		"ChunksMalformed": chunked + "5\r\nthese\r\nno chunk\r\n",
		"ChunksEndEarly":  chunked + "5\r\nthese\r\n",
		"NoChunks":        chunked,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan error, 1)
			address := reading(t, text(func(q gate.Request) string {
				_, err := q.Body(1 << 20)
				read <- err
				return ""
			}), nil, streams)
			conn := dial(t, address)
			_, _ = io.WriteString(conn, raw)
			_ = conn.Close()
			if err := next(t, "the gate to read the body", read); err != gate.ErrBodyBroken {
				t.Errorf("got %v, want %v", err, gate.ErrBodyBroken)
			}
		})
	}
}

// A streamed body that middleware has read, or has begun to read, counts as consumed.
func TestStreamedBodyReadByOthers(t *testing.T) {
	t.Parallel()
	want := []string{"200 OK 0 " + gate.ErrBodyConsumed.Error()}
	for name, n := range map[string]int{"ToTheEnd": 100_000, "InPart": 4} {
		address := reading(t, bodies(1<<20), func(ctx context.Context, c *app.RequestContext) {
			_, _ = io.CopyN(io.Discard, c.RequestBodyStream(), int64(n))
			c.Next(ctx)
		}, streams)
		for what, raw := range map[string]string{
			"Length":  post(20_000, long(20_000)),
			"Chunked": chunked + "6\r\n123456\r\n0\r\n\r\n",
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				if got := answers(t, address, raw); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// Where middleware outside has stopped exactly between two chunks, a gate and the handler
// see what is left.
func TestStreamedBodyBegunBetweenChunks(t *testing.T) {
	t.Parallel()
	address := reading(t, bodies(1<<20), func(ctx context.Context, c *app.RequestContext) {
		_, _ = io.ReadFull(c.RequestBodyStream(), make([]byte, 3))
		c.Next(ctx)
	}, streams)
	got := answers(t, address, chunked+"3\r\n123\r\n4\r\n4567\r\n0\r\n\r\n")
	if want := []string{"200 OK 4 <nil>"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a gate has not read of a body is not taken for the next request. In the
// middle of a chunk Hertz would do so, so then the connection ends.
func TestRestOfAStreamedBody(t *testing.T) {
	t.Parallel()
	const smuggled = "0\r\n\r\nPOST /smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
	for name, c := range map[string]struct {
		max  int64
		raw  string
		more bool // the connection goes on
	}{
		"Length/Nothing": {-1, post(50_000, long(10_000)+smuggled+long(40_000-len(smuggled))), true},
		"Length/All":     {1 << 20, post(50_000, long(10_000)+smuggled+long(40_000-len(smuggled))), true},
		"Chunks/Nothing": {-1, chunks(long(10)+smuggled, long(100)), true},
		"Chunks/APart":   {9, chunks(long(10)+smuggled, long(100)), false},
		"Chunks/All":     {1 << 20, chunks(long(10)+smuggled, long(100)), true},
	} {
		for what, refuses := range map[string]bool{"Refused": true, "Unread": false} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				reads := entering(func(q gate.Request) gate.Pass {
					if q.Path() != "/detail" {
						t.Errorf("a gate was asked about %s, want no such request", q.Path())
					}
					_, _ = q.Body(c.max)
					if refuses {
						return gate.Pass{Reply: &gate.Reply{Status: http.StatusForbidden}}
					}
					return gate.Pass{}
				})
				address := behind(t, ok, []gate.Gate{reads, reads}, streams)
				want := []string{map[bool]string{true: "403 Forbidden ", false: "200 OK ok"}[refuses]}
				if c.more {
					want = append(want, want[0])
				}
				if got := answers(t, address, c.raw, get); !slices.Equal(got, want) {
					t.Errorf("got the answers %q, want %q", got, want)
				}
			})
		}
	}
}

// chunks is a request with a body in chunks.
func chunks(all ...string) string {
	var out strings.Builder
	out.WriteString(chunked)
	for _, chunk := range all {
		fmt.Fprintf(&out, "%x\r\n%s\r\n", len(chunk), chunk)
	}
	return out.String() + "0\r\n\r\n"
}

// The handler reads what a gate has read, and what it has left.
func TestHandlerReadsAStreamedBody(t *testing.T) {
	t.Parallel()
	for _, max := range []int64{-1, 10, 20_000, 1 << 20} {
		reads := entering(func(q gate.Request) gate.Pass {
			_, err := q.Body(max)
			if want := max < 100_000; errors.Is(err, gate.ErrBodyTooLarge) != want {
				t.Errorf("Body(%d): got %v, want too large: %t", max, err, want)
			}
			return gate.Pass{}
		})
		for name, read := range map[string]func(c *app.RequestContext) ([]byte, error){
			"Body":   (*app.RequestContext).Body,
			"Stream": func(c *app.RequestContext) ([]byte, error) { return io.ReadAll(c.RequestBodyStream()) },
		} {
			address := behind(t, func(_ context.Context, c *app.RequestContext) {
				body, err := read(c)
				c.String(http.StatusOK, "%d %v", len(body), err)
			}, []gate.Gate{reads, reads}, streams)
			want := slices.Repeat([]string{"200 OK 100000 <nil>"}, 2)
			if got := answers(t, address, post(100_000, long(100_000)), post(100_000, long(100_000))); !slices.Equal(got, want) {
				t.Errorf("%s after Body(%d): got %q, want %q", name, max, got, want)
			}
		}
	}
}

// form is a multipart form with two fields and a file, whose parts are in this order.
func form(t testing.TB, order ...string) (contentType, body string) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	_ = w.SetBoundary("boundary")
	for _, name := range order {
		part, err := w.CreateFormField(name)
		if name == "file" {
			part, err = w.CreateFormFile(name, "a.txt")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, "value of "+name)
	}
	_ = w.Close()
	return w.FormDataContentType(), out.String()
}

func posted(contentType, body string) string {
	return fmt.Sprintf("POST /detail HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", contentType, len(body), body)
}

// Hertz parses a form before any handler runs. A gate gets the same bytes for the same
// form, and a handler gets the form.
func TestMultipartForm(t *testing.T) {
	t.Parallel()
	whole := text(func(q gate.Request) string {
		body, err := q.Body(1 << 20)
		return fmt.Sprint(string(body), err)
	})
	kind, first := form(t, "a", "b", "file")
	_, second := form(t, "file", "b", "a")
	for name, c := range map[string]struct {
		opts []config.Option
		same bool // for another order of the parts
	}{
		"Parsed": {nil, true}, "NotParsed": {[]config.Option{server.WithDisablePreParseMultipartForm(true)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := reading(t, whole, nil, c.opts...)
			got := answers(t, address, posted(kind, first), posted(kind, first), posted(kind, second))
			if len(got) != 3 || got[0] != got[1] || !strings.Contains(got[0], "value of file") || !strings.HasSuffix(got[0], "<nil>") {
				t.Fatalf("got %q, want one form twice", got)
			}
			if (got[0] == got[2]) != c.same {
				t.Errorf("for another order of the parts, got\n%s\nand\n%s\nwant them the same: %t", got[0], got[2], c.same)
			}
			if !c.same && got[0] != "200 OK "+first+"<nil>" {
				t.Errorf("got %q, want what was sent", got[0])
			}
		})
	}
	t.Run("TooLarge", func(t *testing.T) {
		t.Parallel()
		got := answers(t, reading(t, bodies(100), nil), posted(kind, first))
		if want := []string{"200 OK 0 " + gate.ErrBodyTooLarge.Error()}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("LeftToTheHandler", func(t *testing.T) {
		t.Parallel()
		reads := entering(func(q gate.Request) gate.Pass {
			_, _ = q.Body(1 << 20)
			return gate.Pass{}
		})
		address := behind(t, func(_ context.Context, c *app.RequestContext) { c.String(http.StatusOK, "%s", c.FormValue("b")) }, []gate.Gate{reads})
		if got := answers(t, address, posted(kind, first)); !slices.Equal(got, []string{"200 OK value of b"}) {
			t.Errorf("the handler got %q, want the value of b", got)
		}
	})
}

// A form whose files middleware has removed is gone.
func TestMultipartFormRemoved(t *testing.T) {
	t.Parallel()
	address := reading(t, bodies(1<<20), func(ctx context.Context, c *app.RequestContext) {
		c.Request.RemoveMultipartFormFiles()
		c.Next(ctx)
	})
	got := answers(t, address, posted(form(t, "a", "file")))
	if want := []string{"200 OK 0 " + gate.ErrBodyConsumed.Error()}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A form that Hertz reads in another way than its bytes say has no key.
func TestAFormThatHertzReadsOtherwise(t *testing.T) {
	t.Parallel()
	key := gate.ByForm("a", nil)
	address := reading(t, text(func(q gate.Request) string {
		value, err := key(q)
		return fmt.Sprint(value, " ", err != nil)
	}), nil, server.WithDisablePreParseMultipartForm(true))
	part := func(boundary, value string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=a\r\n\r\n" + value + "\r\n--" + boundary + "--\r\n"
	}
	got := answers(
		t, address,
		posted("multipart/form-data; boundary=b", part("b", "1")),
		posted("multipart/form-data; boundary=evil; boundary*0=real", part("real", "1")+part("evil", "2")),
		posted("multipart/form-data; boundary=b\r\nContent-Encoding: gzip", part("b", "1")),
	)
	if want := []string{"200 OK form:a=1 false", "200 OK  true", "200 OK  true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
