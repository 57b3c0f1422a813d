// Browsertest makes the screenshots of docs/pictures, with a headless Chromium; its tests use the page of package console
// and that of examples/play as people do.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	root = "../.." // the module that this one stands in
	home = root + "/docs/pictures"
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := draw(ctx, home); err != nil {
		cancel()
		log.Fatal(err) //nolint:gocritic // it is canceled
	}
}

// picture is one screenshot.
type picture struct {
	file          string
	of            string // the path of a page
	colours       string
	width, height int64
}

// pictures are in the order in which they are taken: those of play first, while its page has seen all of the traffic.
var pictures = []picture{
	{"play-light.png", "/", "light", 1200, 1000},
	{"play-dark.png", "/", "dark", 1200, 1000},
	{"console-light.png", "/console/", "light", 1200, 1000},
	{"console-dark.png", "/console/", "dark", 1200, 1000},
	{"console-phone-light.png", "/console/", "light", 390, 844},
	{"console-phone-dark.png", "/console/", "dark", 390, 844},
}

// draw takes the pictures while the play program runs, after half a minute of traffic in which Redis was stopped for a while.
func draw(ctx context.Context, dir string) error {
	binary, remove, err := build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	url, end, err := startPlay(ctx, binary, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer end()
	b, leave, err := start(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = b.do(
		chromedp.EmulateViewport(1200, 1000), chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#algorithms article")),
		chromedp.WaitEnabled(chromedp.CSS("#work")), click("#work"), chromedp.Sleep(20*time.Second), click("#burst"), click("#repeat"), chromedp.Sleep(6*time.Second),
		click("#redis"), chromedp.Sleep(4*time.Second), click("#redis"), chromedp.Sleep(4*time.Second),
		click("#sell"), chromedp.Sleep(6*time.Second), click("#reset"), chromedp.Sleep(4*time.Second),
	)
	if err != nil {
		return err
	}
	on := "/"
	for _, p := range pictures {
		var viewport []chromedp.EmulateViewportOption
		if p.width < 500 {
			viewport = append(viewport, chromedp.EmulateMobile)
		}
		colours := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.colours}}}
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, colours); err != nil {
			return err
		}
		steps := []chromedp.Action[chromedp.Void]{chromedp.EmulateViewport(p.width, p.height, viewport...)}
		if p.of != on {
			on = p.of
			steps = append(steps, chromedp.Navigate(url+p.of))
		}
		err := b.do(append(steps, chromedp.WaitVisible(chromedp.CSS("#limits tbody tr")), chromedp.Sleep(2*time.Second))...)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, p.file), png, 0o644); err != nil { //nolint:gosec // for everyone to read
			return err
		}
	}
	said, strange := b.heard(url)
	for _, s := range append(said, strange...) {
		log.Print(s)
	}
	return nil
}
