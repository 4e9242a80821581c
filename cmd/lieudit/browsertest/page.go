package browsertest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options are the circumstances under which a person sees a page. The zero value is a window of 1280×800 pixels in light
// colours, with JavaScript, in English.
type Options struct {
	Width, Height int
	Dark          bool   // prefers-color-scheme
	ReducedMotion bool   // prefers-reduced-motion
	ForcedColors  bool   // forced-colors, as a contrast theme of Windows
	Print         bool   // the style sheets of print
	Language      string // Accept-Language, as "fr" or "fr-CA,fr;q=0.9"
	NoScript      bool   // JavaScript off
}

// Context holds cookies and storage that its pages share.
type Context struct {
	t         testing.TB
	browser   *Browser
	id        string
	downloads string // the folder of files that its pages save
}

// NewContext makes a context without cookies that ends with the test.
func (b *Browser) NewContext(t testing.TB) *Context {
	t.Helper()
	var made struct{ BrowserContextID string }
	c := &Context{t: t, browser: b, downloads: t.TempDir()}
	c.require("Target.createBrowserContext", nil, &made)
	c.id = made.BrowserContextID
	t.Cleanup(func() {
		ctx, cancel := limitedContext()
		defer cancel()
		b.call(ctx, "", "Target.disposeBrowserContext", object{"browserContextId": c.id}, nil) // it ends with Chromium otherwise
	})
	c.require("Browser.setDownloadBehavior", object{
		"behavior": "allowAndName", "browserContextId": c.id, "downloadPath": c.downloads, "eventsEnabled": true,
	}, nil)
	return c
}

// require calls a method of the browser that must succeed.
func (c *Context) require(method string, params object, result any) {
	c.t.Helper()
	ctx, cancel := limitedContext()
	defer cancel()
	if err := c.browser.call(ctx, "", method, params, result); err != nil {
		c.t.Fatal(err)
	}
}

// NewPage opens an empty page in a context of its own.
func (b *Browser) NewPage(t testing.TB, o Options) *Page {
	t.Helper()
	return b.NewContext(t).NewPage(o)
}

// NewPage opens an empty page that shares the context's cookies.
func (c *Context) NewPage(o Options) *Page {
	c.t.Helper()
	p := &Page{c.t, &tab{browser: c.browser, context: c}}
	var target struct{ TargetID string }
	p.require("Target.createTarget", object{"url": "about:blank", "browserContextId": c.id}, &target)
	var attached struct{ SessionID string }
	p.require("Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session, p.frame = attached.SessionID, target.TargetID
	c.browser.handleEvents(p.session, p.handleEvent)
	p.require("Page.enable", nil, nil)
	p.require("Runtime.enable", nil, nil)
	p.require("Log.enable", nil, nil)
	p.require("Network.enable", nil, nil)
	p.ApplyOptions(o)
	c.t.Cleanup(p.close)
	return p
}

// ApplyOptions changes the circumstances of a page, which is a lot faster than a new one. The window and the colours change at
// once, the language and JavaScript with the next page.
func (p *Page) ApplyOptions(o Options) {
	p.t.Helper()
	p.options = o.withDefaults()
	for _, s := range p.options.settings(p.browser.userAgent) {
		p.require(s.method, s.params, nil)
	}
}

func (o Options) withDefaults() Options {
	if o.Width == 0 {
		o.Width = 1280
	}
	if o.Height == 0 {
		o.Height = 800
	}
	if o.Language == "" {
		o.Language = "en"
	}
	return o
}

type setting struct {
	method string
	params object
}

// settings are the calls that make a tab what the options say.
func (o Options) settings(userAgent string) []setting {
	chosen := func(on bool, value string) string {
		if on {
			return value
		}
		return ""
	}
	colours := "light"
	if o.Dark {
		colours = "dark"
	}
	locale, _, _ := strings.Cut(o.Language, ",")
	return []setting{
		{"Emulation.setDeviceMetricsOverride", object{"width": o.Width, "height": o.Height, "deviceScaleFactor": 1, "mobile": false}},
		{"Emulation.setScrollbarsHidden", object{"hidden": true}}, // as on a phone; otherwise they take 15 pixels of the width
		{"Emulation.setFocusEmulationEnabled", object{"enabled": true}},
		{"Emulation.setEmulatedMedia", object{"media": chosen(o.Print, "print"), "features": []object{
			{"name": "prefers-color-scheme", "value": colours},
			{"name": "prefers-reduced-motion", "value": chosen(o.ReducedMotion, "reduce")},
			{"name": "forced-colors", "value": chosen(o.ForcedColors, "active")},
		}}},
		{"Emulation.setUserAgentOverride", object{"userAgent": userAgent, "acceptLanguage": o.Language}},
		{"Emulation.setLocaleOverride", object{"locale": locale}},
		{"Emulation.setScriptExecutionDisabled", object{"value": o.NoScript}},
	}
}

// Page is a tab, and the test that it fails. Its methods wait at most a minute, and fail the test then.
type Page struct {
	t testing.TB
	*tab
}

// tab is the state of a tab that its events change.
type tab struct {
	browser        *Browser
	context        *Context
	options        Options
	session, frame string

	mu         sync.Mutex
	isExpected bool // whether the driver has begun a navigation that has not reached its document
	isLoading  bool
	url        string     // of the document
	axeWorld   int        // the world of the document that has axe-core, if it has one
	loader     string     // of the document: what Chromium calls its load
	requests   []*Request // of all documents
	byID       map[string]*Request
	complaints []string
	downloads  []*download
}

// With returns the same tab for a subtest: what fails, fails t.
func (p *Page) With(t testing.TB) *Page { return &Page{t, p.tab} }

// call calls a method of the tab.
func (p *tab) call(method string, params, result any) error {
	ctx, cancel := limitedContext()
	defer cancel()
	return p.browser.call(ctx, p.session, method, params, result)
}

// require calls a method of the tab that must succeed.
func (p *Page) require(method string, params object, result any) {
	p.t.Helper()
	if err := p.call(method, params, result); err != nil {
		p.fail("%v", err)
	}
}

// fail ends the test, with the page's address and a screenshot.
func (p *Page) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s: %s%s", p.URL(), fmt.Sprintf(format, args...), p.failureScreenshot())
}

// failureScreenshot saves what the page shows, and names the file. A page that shows nothing any more has none.
func (p *Page) failureScreenshot() string {
	name := strings.NewReplacer("/", "-", " ", "_").Replace(p.t.Name()) + ".png"
	path := filepath.Join(os.TempDir(), "lieudit-screenshots", name)
	if err := p.saveScreenshot(path); err != nil {
		return ""
	}
	return "\nscreenshot: " + path
}

// close closes the tab. Complaints that the test did not ask for fail it.
func (p *Page) close() {
	p.t.Helper()
	for _, complaint := range p.Complaints() {
		p.t.Errorf("%s: %s", p.URL(), complaint)
	}
	ctx, cancel := limitedContext()
	defer cancel()
	p.browser.call(ctx, "", "Target.closeTarget", object{"targetId": p.frame}, nil) // it ends with its context otherwise
	p.browser.handleEvents(p.session, nil)
}

// Open opens an address, waits until it has loaded and returns the status of the answer.
func (p *Page) Open(url string) int {
	p.t.Helper()
	p.expectDocument(true)
	var answer struct{ LoaderID, ErrorText string }
	p.require("Page.navigate", object{"url": url}, &answer)
	if answer.ErrorText != "" {
		p.fail("open %s: %s", url, answer.ErrorText)
	}
	if answer.LoaderID == "" { // another place of the same document
		p.expectDocument(false)
	}
	p.waitForLoad()
	return p.Status()
}

// Reload loads the page again, as the browser's button does.
func (p *Page) Reload() {
	p.t.Helper()
	p.expectDocument(true)
	p.require("Page.reload", nil, nil)
	p.waitForLoad()
}

// Back returns to the page before, as the browser's button does.
func (p *Page) Back() {
	p.t.Helper()
	var history struct {
		CurrentIndex int
		Entries      []struct{ ID int }
	}
	p.require("Page.getNavigationHistory", nil, &history)
	if history.CurrentIndex == 0 {
		p.fail("there is no page before")
	}
	p.expectDocument(true)
	p.require("Page.navigateToHistoryEntry", object{"entryId": history.Entries[history.CurrentIndex-1].ID}, nil)
	p.waitForLoad()
}

// expectDocument notes whether the driver itself has begun a navigation.
func (p *tab) expectDocument(expected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isExpected = expected
}

// URL is the address of the document.
func (p *Page) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// Status is the status of the answer that the document came with.
func (p *Page) Status() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	status := 0
	for _, r := range p.requests {
		if r.loader == p.loader && r.Type == "Document" {
			status = r.Status // of the last one, after redirects
		}
	}
	return status
}

// errScript is the exception of an Eval's script.
var errScript = errors.New("exception")

// Eval evaluates a JavaScript expression in the page, waits for it if it is a promise, and returns its value as
// encoding/json decodes it.
func (p *Page) Eval(expression string) any {
	p.t.Helper()
	value, err := p.evaluate(expression, 0)
	if err != nil {
		p.fail("%s: %v", abbreviate(expression), err)
	}
	return value
}

// evaluate evaluates an expression in the page, or in one of its isolated worlds.
func (p *tab) evaluate(expression string, world int) (value any, err error) {
	params := object{"expression": expression, "awaitPromise": true, "returnByValue": true}
	if world != 0 {
		params["contextId"] = world
	}
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails *exception
	}
	if err := p.call("Runtime.evaluate", params, &answer); err != nil {
		return nil, err
	}
	if answer.ExceptionDetails != nil {
		return nil, fmt.Errorf("%w: %s", errScript, answer.ExceptionDetails)
	}
	return answer.Result.Value, nil
}

// shownText is the text that a document shows. Its body may not have arrived yet.
const shownText = `document.body ? document.body.innerText : ""`

// Text is the text that the page shows.
func (p *Page) Text() string {
	p.t.Helper()
	text, _ := p.Eval(shownText).(string)
	return text
}

// WaitFor waits until the page shows a text. Any white space is as good as any other, as it is for a reader.
func (p *Page) WaitFor(text string) {
	p.t.Helper()
	var shown any
	p.poll(func() bool {
		shown, _ = p.evaluate(shownText, 0) // an error while the page changes
		return strings.Contains(foldSpaces(fmt.Sprint(shown)), foldSpaces(text))
	}, func() string { return fmt.Sprintf("%q does not appear in:\n%v", text, shown) })
}

// foldSpaces makes one space of any white space.
func foldSpaces(text string) string { return strings.Join(strings.Fields(text), " ") }

// WaitUntil waits until a JavaScript expression is true.
func (p *Page) WaitUntil(expression string) {
	p.t.Helper()
	var value any
	var err error
	p.poll(func() bool {
		value, err = p.evaluate(expression, 0)
		return value == true
	}, func() string { return fmt.Sprintf("still not so: %s: %v %v", expression, value, err) })
}

// pollInterval is the pause between two looks at something that has not happened yet.
const pollInterval = 10 * time.Millisecond

// poll returns once a condition is true. At the limit it fails the test and describes what is so instead.
func (p *Page) poll(condition func() bool, describe func() string) {
	p.t.Helper()
	ctx, cancel := limitedContext()
	defer cancel()
	for !condition() {
		select {
		case <-time.After(pollInterval):
		case <-p.browser.ended:
			p.fail("%v\n%s", errEnded, p.browser.stderr())
		case <-ctx.Done():
			p.fail("%s", describe())
		}
	}
}

// waitForLoad waits until the navigation that has begun has loaded its page.
func (p *Page) waitForLoad() {
	p.t.Helper()
	p.poll(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.isExpected && !p.isLoading
	}, func() string { return "the page does not finish loading" })
}

// settle waits for the navigation that an action has begun, if it has. The page announces it before it answers a call that
// came after the action.
func (p *Page) settle() {
	p.t.Helper()
	p.evaluate("0", 0) // an error if the page has gone already
	p.evaluate("0", 0)
	p.waitForLoad()
}

// Screenshot saves the whole page as a PNG. It makes the folder if there is none.
func (p *Page) Screenshot(path string) {
	p.t.Helper()
	if err := p.saveScreenshot(path); err != nil {
		p.t.Fatalf("%s: screenshot: %v", p.URL(), err)
	}
}

func (p *tab) saveScreenshot(path string) error {
	var layout struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	if err := p.call("Page.getLayoutMetrics", nil, &layout); err != nil {
		return err
	}
	var picture struct{ Data string }
	size := layout.CSSContentSize
	if err := p.call("Page.captureScreenshot", object{"format": "png", "captureBeyondViewport": true, "clip": object{
		"x": 0, "y": 0, "width": max(size.Width, float64(p.options.Width)), "height": max(size.Height, float64(p.options.Height)), "scale": 1,
	}}, &picture); err != nil {
		return err
	}
	png, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, png, 0o644)
}

// abbreviate shortens a text for a message.
func abbreviate(text string) string {
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}
