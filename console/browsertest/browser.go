package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a headless Chromium with one page, and what the page said and asked for.
type browser struct {
	ctx context.Context

	mu    sync.Mutex
	said  []string // what stands in the console, and exceptions
	asked []string // addresses
}

// start starts one. The function that is returned ends it.
func start(ctx context.Context) (b *browser, end func(), err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, fmt.Errorf("there is no chromium; make chromium installs it: %w", err)
	}
	b = new(browser)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	ctx, leave := chromedp.NewContext(ctx, chromedp.WithListener(b.hear))
	b.ctx = ctx
	end = func() {
		leave()
		stop()
	}
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, cdplog.Enable, struct{}{}); return err },
	} {
		if err := chromedp.Do(ctx); err != nil {
			end()
			return nil, nil, err
		}
		if err := enable(); err != nil {
			end()
			return nil, nil, err
		}
	}
	return b, end, nil
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		b.said = append(b.said, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

// heard is what the page said so far, and which addresses it asked for that do not begin with home.
func (b *browser) heard(home string) (said, strange []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range b.asked {
		if !strings.HasPrefix(address, home) && address != "about:blank" {
			strange = append(strange, address)
		}
	}
	return append([]string{}, b.said...), strange
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(b.ctx, steps...)
}

// text is the value of an expression of JavaScript, as text.
func (b *browser) text(expression string) (string, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
}

// await asks for an expression until it is "true", and fails with what else it said.
func (b *browser) await(expression string, most time.Duration) error {
	var said string
	for began := time.Now(); time.Since(began) < most; time.Sleep(20 * time.Millisecond) {
		var err error
		if said, err = b.text(expression); err != nil {
			return err
		}
		if said == "true" {
			return nil
		}
	}
	return fmt.Errorf("%s is %q after %v, want true", expression, said, most)
}

// click clicks what a selector finds.
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}
