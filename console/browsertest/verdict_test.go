package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

const says = `document.querySelector("#verdict").textContent.includes(`

// through opens the console behind a proxy of this test, which the test can make refuse and can stop.
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
	if got := p.is(says + `"已暂停")`); got != "true" {
		t.Errorf("while it is paused: got the sentence %q, want that it is paused", p.is(`document.querySelector("#verdict").textContent`))
	}
	p.must(p.do(click("#pause"), click("#language"), click("#seconds summary")))
	p.wants(`document.querySelector("#verdict").dataset.level === "good" && document.documentElement.lang === "en"`)
	proxy.CloseClientConnections()
	proxy.Listener.Close()
	p.wants(says + `"No connection")`)
	p.redraws()
	if got := p.is(says + `"连接中断")`); got != "true" {
		t.Errorf("without the service: got the sentence %q, want that it is away", p.is(`document.querySelector("#verdict").textContent`))
	}
}

// TestWhoIsRefusedIsToldSo, and not that the service is away; and the page goes on if access comes back.
func TestWhoIsRefusedIsToldSo(t *testing.T) {
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
		`{"lost": 1}`:                                                "warn lost",
	} {
		p.is(`(() => { window.sentence = undefined; Promise.all([import("./state.js"), import("./views.js")]).then(([{ State }, { verdict }]) => {
			const state = new State();
			state.take({ from: 1, now: 60, shown: 60, gauges: [], lines: [{ primitive: "stock", name: "shop", policy: "", seconds: { 30: ` + counts + ` } }] });
			window.sentence = verdict(state).join(" ");
		}); })()`)
		p.wants(`window.sentence !== undefined`)
		if got := p.is(`window.sentence`); got != want {
			t.Errorf("%s: got %s, want %s", counts, strconv.Quote(got), strconv.Quote(want))
		}
	}
}
