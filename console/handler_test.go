package console

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func everyone(*http.Request) bool { return true }

// away is a store whose Redis is not there.
func away(t testing.TB) *store.Store {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { rdb.Close() })
	return must(store.Open(rdb, nil))(t)
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	return askWith(h, method, target, "", header...)
}

// askWith sends a body too. The header is pairs of a name and a value.
func askWith(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a stream ends after its first frame
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if method == http.MethodPost {
		r = r.WithContext(context.Background())
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWiringIsChecked(t *testing.T) {
	t.Parallel()
	st := away(t)
	window := []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}
	one, two := must(limit.New(st, "same", window, nil))(t), must(limit.New(st, "same", window, nil))(t)
	for name, c := range map[string]struct {
		wire func()
		says []string
	}{
		"nothing":  {func() { Handler(nil, nil, nil) }, []string{"console.Handler: ", "pass a ", "allow is nil: pass a function"}},
		"no allow": {func() { Handler(st, nil, nil) }, []string{"allow is nil: pass a function"}},
		"streams":  {func() { Handler(st, everyone, &Options{MaxStreams: -1}) }, []string{"MaxStreams is -1: use 1 or more, or 0 for 50"}},
		"nil ones": {func() {
			Handler(st, everyone, &Options{LookUp: Primitives{Limiters: []*limit.Limiter{nil}, InFlight: []*inflight.Limiter{nil}}})
		}, []string{"LookUp.Limiters[0] is nil or zero", "LookUp.InFlight[0] is nil"}},
		"zero ones": {func() {
			Handler(st, everyone, &Options{Actions: Primitives{Lockers: []*lock.Locker{{}}, Guards: []*idempotency.Guard{{}}, Stocks: []*stock.Stock{{}}}})
		}, []string{"Actions.Lockers[0] is nil or zero", "Actions.Guards[0]", "Actions.Stocks[0]"}},
		"two": {func() { Handler(st, everyone, &Options{Actions: Primitives{Limiters: []*limit.Limiter{one, two}}}) }, []string{`Actions.Limiters[1]: another limit is named "same" too`, "pass one of them"}},
	} {
		got := func() (text string) {
			defer func() {
				if err, is := recover().(error); is {
					text = err.Error()
				}
			}()
			c.wire()
			return "no panic"
		}()
		for _, want := range c.says {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want a panic with %q", name, got, want)
			}
		}
	}
	h := Handler(st, everyone, &Options{LookUp: Primitives{Limiters: []*limit.Limiter{one}}, Actions: Primitives{Limiters: []*limit.Limiter{one, one}}})
	if offers := h.(*console).things.offers(); len(offers) != 1 || len(offers[0].Actions) != 3 {
		t.Errorf("the same limiter three times: got the offers %+v, want it once, with its three actions", offers)
	}
}

// TestWhoMayNotSeeItSeesNothing: not even which paths there are.
func TestWhoMayNotSeeItSeesNothing(t *testing.T) {
	t.Parallel()
	h := Handler(away(t), func(r *http.Request) bool { return r.Header.Get("Authorization") == "operator" }, nil)
	for _, path := range []string{"", "page.css", "page.js", "events", "lookup", "act", "nothing"} {
		for _, method := range []string{"GET", "POST"} {
			if w := ask(h, method, "/debug/neap/"+path); w.Code != 403 || w.Body.String() != "forbidden\n" {
				t.Errorf("%s %s from a stranger: got %d %q, want 403 and no more", method, path, w.Code, w.Body)
			}
		}
	}
	for path, want := range map[string]int{"": 200, "page.css": 200, "page.js": 200, "words.js": 200, "events": 200, "nothing": 404, "index.html": 404, "page.js.map": 404, "lookup": 405, "act": 405} {
		if w := ask(h, "GET", "/debug/neap/"+path, "Authorization", "operator"); w.Code != want {
			t.Errorf("GET %s from an operator: got %d, want %d", path, w.Code, want)
		}
	}
	for _, path := range []string{"", "page.css", "events"} {
		if w := ask(h, "DELETE", "/debug/neap/"+path, "Authorization", "operator"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("DELETE %s: got %d, Allow %q, want 405 and GET, HEAD", path, w.Code, w.Header().Get("Allow"))
		}
	}
	if w := ask(h, "HEAD", "/events", "Authorization", "operator"); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("HEAD events: got %d %q, want 200 and nothing", w.Code, w.Body)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	h := Handler(away(t), func(r *http.Request) bool { return r.Header.Get("No") == "" }, nil)
	for _, path := range []string{"", "page.css", "dom.js", "events", "lookup", "nothing"} {
		for _, no := range []string{"", "yes"} {
			got := ask(h, "GET", "/x/"+path, "No", no).Header()
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
				"Cache-Control":           "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			} {
				if got.Get(name) != want {
					t.Errorf("%q: got %s: %q, want %q", path, name, got.Get(name), want)
				}
			}
		}
	}
	for path, want := range map[string]string{"": "text/html; charset=utf-8", "page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "events": "text/event-stream; charset=utf-8"} {
		if got := ask(h, "GET", "/x/"+path).Header().Get("Content-Type"); got != want {
			t.Errorf("%q: got the type %q, want %q", path, got, want)
		}
	}
}

// TestAnyPrefix: with the prefix, without it, and where the slash behind it was stripped too.
func TestAnyPrefix(t *testing.T) {
	t.Parallel()
	h := Handler(away(t), everyone, nil)
	stripped := http.StripPrefix("/debug/neap", h)
	for target, asked := range map[string]http.Handler{"/": h, "/page.css": h, "/a/b/c/": h, "/a/b/c/page.css": h, "/debug/neap/": stripped, "/debug/neap/page.css": stripped} {
		if w := ask(asked, "GET", target); w.Code != 200 {
			t.Errorf("%s: got %d, want 200", target, w.Code)
		}
	}
	if w := ask(stripped, "GET", "/debug/neap?lang=zh"); w.Code != 308 || w.Header().Get("Location") != "neap/" {
		t.Errorf("without the slash: got %d to %q, want 308 to neap/, beside it", w.Code, w.Header().Get("Location"))
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	h := Handler(away(t), everyone, nil)
	for accept, want := range map[string]string{
		"": "en", "fr": "en", "zh": "zh", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "en-US,en;q=0.9,zh;q=0.8": "en",
		"fr;q=1,en;q=0.2,ZH-Hant;q=0.3": "zh", "zh;q=0": "en", "zh;q=x": "en", ";;,,": "en",
	} {
		if got := ask(h, "GET", "/", "Accept-Language", accept).Body.String(); !strings.Contains(got, `<html lang="`+want+`">`) {
			t.Errorf("Accept-Language: %s: got another than %s, want it", accept, want)
		}
		if got := ask(h, "GET", "/?lang=zh", "Accept-Language", accept).Body.String(); !strings.Contains(got, `<html lang="zh">`) {
			t.Errorf("the switch, over Accept-Language: %s: got another than zh, want it", accept)
		}
	}
	if got := ask(h, "GET", `/?lang="><script>`).Body.String(); !strings.Contains(got, `<html lang="en">`) {
		t.Error("a hostile lang: got it in the page, want en")
	}
}

// TestAssetsMakeNoMarkup: names, subjects and items reach the page as text alone, and nothing of it is inline or another's.
func TestAssetsMakeNoMarkup(t *testing.T) {
	t.Parallel()
	files := must(fs.Glob(embedded, "assets/*"))(t)
	if len(files) < 8 {
		t.Fatalf("got the files %v, want 8 at least", files)
	}
	banned := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|\beval\b|new Function|setHTML|\bstyle=|<style|<script>|javascript:|https?://|\son[a-z]+="|localStorage|cookie`)
	for _, file := range files {
		text := strings.ReplaceAll(string(must(embedded.ReadFile(file))(t)), "http://www.w3.org/2000/svg", "")
		for _, found := range banned.FindAllString(text, -1) {
			t.Errorf("%s has %q, want none", file, found)
		}
		for _, found := range regexp.MustCompile(`(?:src|href|from)(?:=| )["']([^"'#][^"']*)`).FindAllStringSubmatch(text, -1) {
			name := strings.TrimPrefix(found[1], "./")
			if _, err := embedded.ReadFile("assets/" + name); err != nil {
				t.Errorf("%s needs %q, want a file beside it", file, name)
			}
		}
	}
}

// TestEveryCountIsShown: what the timeline counts stands somewhere on the page, and in the tables of those that have it.
func TestEveryCountIsShown(t *testing.T) {
	t.Parallel()
	page := string(must(embedded.ReadFile("assets/views.js"))(t))
	for _, name := range names {
		if !strings.Contains(page, "'"+name+"'") && !strings.Contains(page, "sum."+name) {
			t.Errorf("the timeline counts %q, and no view has it", name)
		}
	}
	_, tags, _ := strings.Cut(page, "function named(")
	_, locks, _ := strings.Cut(tags, "['locks', 'lock',")
	locks, guards, _ := strings.Cut(locks, "['guards', 'guard',")
	guards, stocks, _ := strings.Cut(guards, "['stocks', 'stock',")
	stocks, _, _ = strings.Cut(stocks, "]]],\n")
	tags, _, _ = strings.Cut(tags, "\n}\n")
	for of, c := range map[string]struct {
		table    string
		outcomes []string
	}{
		"locks":  {locks, []string{"granted", "held", "lost", "failed"}},
		"guards": {guards + tags, []string{"granted", "held", "replayed", "mismatched", "in doubt", "no result", "completed", "abandoned", "lost", "overtaken", "failed"}},
		"stocks": {stocks + tags, []string{"granted", "denied", "completed", "abandoned", "refused", "disagreed", "lost", "failed"}},
	} {
		for _, outcome := range c.outcomes {
			if !strings.Contains(c.table, "'"+outcome+"'") {
				t.Errorf("%s have the outcome %q, and their table does not show it", of, outcome)
			}
		}
	}
}

// TestBothLanguagesSayAll that the page may ask for.
func TestBothLanguagesSayAll(t *testing.T) {
	t.Parallel()
	words := string(must(embedded.ReadFile("assets/words.js"))(t))
	_, rest, _ := strings.Cut(words, "const en = {")
	en, rest, _ := strings.Cut(rest, "\n};\n")
	zh, _, _ := strings.Cut(rest, "\n};\n")
	entry := regexp.MustCompile(`(?:'([^']+)'|\b([A-Za-z]+)): '((?:[^'\\]|\\.)*)'`)
	read := func(text string) map[string]string {
		all := map[string]string{}
		for _, found := range entry.FindAllStringSubmatch(text, -1) {
			all[found[1]+found[2]] = found[3]
		}
		return all
	}
	english, chinese := read(en), read(zh)
	if len(english) < 100 {
		t.Fatalf("got %d words, want 100 at least", len(english))
	}
	fields := regexp.MustCompile(`\{\w+\}`)
	for key, says := range map[string]string{"e.request": "number", "c.reset": "hold"} { // a body with a number that is not whole is no request; Limiter.Reset lifts holds
		if !strings.Contains(english[key], says) {
			t.Errorf("%s is %q, want it to speak of a %s", key, english[key], says)
		}
	}
	for key, text := range english {
		if chinese[key] == "" || strings.Join(fields.FindAllString(text, -1), "") == "" != (strings.Join(fields.FindAllString(chinese[key], -1), "") == "") {
			t.Errorf("%s is %q in English and %q in Chinese, want both, with the same fields", key, text, chinese[key])
		}
	}
	for key, text := range chinese {
		if strings.ContainsAny(text, ",:;?!()") {
			t.Errorf("%s is %q in Chinese, want marks of full width", key, text)
		}
	}
	if len(english) != len(chinese) {
		t.Errorf("got %d words in English and %d in Chinese, want the same number", len(english), len(chinese))
	}
	asked := []string{"e.unknown primitive", "e.unknown action", "e.seconds", "e.request", "e.forbidden", "e.unreachable", "e.no answer", // what the page may be told besides failures
		"tag.mismatched", "tag.no result", "tag.disagreed"}
	for _, file := range must(fs.Glob(embedded, "assets/*"))(t) {
		text := string(must(embedded.ReadFile(file))(t))
		for _, words := range []string{`(?:data-say="|[^a-zA-Z]say\('|\['(?:wait|good|warn|bad)', ')([^"'$]+)["']`, `'([fht]\.[a-z]+)'`} {
			for _, found := range regexp.MustCompile(words).FindAllStringSubmatch(text, -1) {
				asked = append(asked, found[1])
			}
		}
	}
	for _, f := range failures {
		asked = append(asked, "e."+f.name)
	}
	for _, made := range []thing{limiterThing(nil), lockerThing(nil), guardThing(nil), stockThing(nil)} {
		for _, action := range made.order {
			asked = append(asked, "a."+action, "c."+action)
			if made.actions[action] == nil {
				t.Errorf("the action %s is shown, and there is none", action)
			}
		}
	}
	for _, key := range asked {
		if english[key] == "" {
			t.Errorf("the page asks for the words %q, and there are none", key)
		}
	}
}
