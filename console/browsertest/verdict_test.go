package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

const says = `document.querySelector("#verdict").textContent.includes(`

// through opens the console behind a proxy. The test can stop the proxy, and can make it refuse requests.
func through(t *testing.T) (p *page, proxy *httptest.Server, refuses *atomic.Bool) {
	t.Helper()
	address, end, err := startPlay(context.WithoutCancel(t.Context()), binary, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	pass, refuses := httputil.NewSingleHostReverseProxy(target), new(atomic.Bool)
	pass.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	b, leave, err := start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
	p = &page{browser: b, t: t, url: proxy.URL}
	p.must(p.do(chromedp.EmulateViewport(1200, 900), chromedp.Navigate(proxy.URL+"/console/")))
	p.wants(`document.querySelector("#verdict").dataset.level === "good"`)
	return p, proxy, refuses
}

// redraws has the page draw what it knows, in another language and second by second.
func (p *page) redraws() {
	p.t.Helper()
	p.must(p.do(click("#language"), click("#seconds summary")))
	p.wants(`document.documentElement.lang === "zh" && document.querySelectorAll("#seconds-table tbody tr").length > 0`)
}

// TestAPageThatStandsStillSaysSo: nothing that draws old figures again says that all is well.
func TestAPageThatStandsStillSaysSo(t *testing.T) {
	t.Parallel()
	p, proxy, _ := through(t)
	p.must(p.do(click("#pause")))
	p.wants(says + `"Paused")`)
	p.redraws()
	if got := p.is(says + `"已暂停")`); got != "true" { //nolint:gosmopolitan // the page's language is Chinese
		t.Errorf("while it is paused: got the sentence %q, want that it is paused", p.is(`document.querySelector("#verdict").textContent`))
	}
	p.must(p.do(click("#pause"), click("#language"), click("#seconds summary")))
	p.wants(`document.querySelector("#verdict").dataset.level === "good" && document.documentElement.lang === "en"`)
	proxy.Listener.Close()
	proxy.CloseClientConnections()
	p.wants(says + `"No connection")`)
	p.redraws()
	if got := p.is(says + `"连接中断")`); got != "true" { //nolint:gosmopolitan // as above
		t.Errorf("without the service: got the sentence %q, want that it is away", p.is(`document.querySelector("#verdict").textContent`))
	}
}

// TestARefusedPageSaysSo, and not that the service is away. It goes on when access comes back.
func TestARefusedPageSaysSo(t *testing.T) {
	t.Parallel()
	p, proxy, refuses := through(t)
	refuses.Store(true)
	proxy.CloseClientConnections()
	p.wants(says + `"No access any more")`)
	refuses.Store(false)
	p.wants(`document.querySelector("#verdict").dataset.level === "good"`)
}

// TestTheSentence says the worst thing that is known.
func TestTheSentence(t *testing.T) {
	t.Parallel()
	p := open(t, "/console/")
	for counts, want := range map[string]string{
		`{}`: "good well",
		`{"granted": 1, "denied": 1, "completed": 1, "abandoned": 1}`: "good well",
		`{"disagreed": 1}`: "bad disagreed",
		`{"disagreed": 1, "lost": 1, "in doubt": 1, "overtaken": 1}`: "bad disagreed",
		`{"lost": 1, "in doubt": 1, "overtaken": 1}`:                 "warn overtaken",
		`{"lost": 1, "in doubt": 1}`:                                 "warn doubt",
		`{"lost": 1, "failed": 3}`:                                   "warn lost",
		`{"failed": 3, "degraded granted": 1}`:                       "warn failed before 3",
		`{"degraded granted": 1, "degraded denied": 2}`:              "warn degraded before 3",
	} {
		p.is(`(() => { window.sentence = undefined; Promise.all([import("./state.js"), import("./views.js")]).then(([{ State }, { verdict }]) => {
			const state = new State();
			state.take({ from: 1, now: 60, shown: 60, gauges: [], lines: [{ primitive: "stock", name: "shop", policy: "", seconds: { 30: ` + counts + ` } }] });
			window.sentence = verdict(state).flatMap((of) => of.n ?? of).join(" ");
		}); })()`)
		p.wants(`window.sentence !== undefined`)
		if got := p.is(`window.sentence`); got != want {
			t.Errorf("%s: got %s, want %s", counts, strconv.Quote(got), strconv.Quote(want))
		}
	}
}

// TestOthersHaveALine, also while nothing happens to them, and what they hold counts for the whole.
func TestOthersHaveALine(t *testing.T) {
	t.Parallel()
	p := open(t, "/console/")
	p.is(`(() => { import("./state.js").then(({ State }) => {
		const state = new State(), gauge = { primitive: "lock", waiting: 0, background: 0 };
		state.take({ from: 1, now: 60, shown: 60, lines: [], gauges: [{ ...gauge, name: "jobs", active: 1 }, { ...gauge, name: "", other: true, active: 7 }] });
		window.others = [...state.of("lock").map((l) => [l.name, l.other, state.gauge("lock", l).active]), state.gauge("lock").active].join();
	}); })()`)
	p.wants(`window.others !== undefined`)
	if got := p.is(`window.others`); got != "jobs,false,1,,true,7,8" {
		t.Errorf("got the lines and their sum %s, want jobs,false,1,,true,7,8", got)
	}
}

// TestRareAnswersHaveATag beside the name, and the tables still fit.
func TestRareAnswersHaveATag(t *testing.T) {
	t.Parallel()
	p := open(t, "/console/")
	p.must(p.do(click("#pause")))
	for _, width := range []int64{360, 900, 1200} {
		p.must(p.do(chromedp.EmulateViewport(width, 740)))
		p.is(`(() => { window.drawn = undefined; Promise.all([import("./state.js"), import("./views.js")]).then(([{ State }, { show }]) => {
			const state = new State();
			const line = (primitive, name, counts) => ({ primitive, name, policy: "", seconds: { 30: counts } });
			state.take({ from: 1, now: 60, shown: 60, gauges: [], lines: [line("stock", "shop", { disagreed: 3 }), line("guard", "payments", { mismatched: 4, "no result": 5, held: 6, abandoned: 7 })] });
			show(state);
			window.drawn = document.querySelector("#stocks tbody th").textContent + "; " + document.querySelector("#guards tbody tr").textContent + "; " + (document.documentElement.scrollWidth <= innerWidth);
		}); })()`)
		p.wants(`window.drawn !== undefined`)
		if got, want := p.is(`window.drawn`), "shoprecord disagrees: 3; paymentskey used for something else: 4done, no result to give: 5000706"; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "; true") {
			t.Errorf("on %d pixels: got %q, want what begins %q, and nothing wider than the window", width, got, want)
		}
	}
}
