package browsertest

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAPageWithoutAFaultHasNoComplaint(t *testing.T) {
	t.Parallel()
	url := website{body: form + `<div class="box" tabindex="0" role="region" aria-label="Table"><p class="wide">x</p></div>`, script: "console.log('fine')"}.serve(t)
	for _, noScript := range []bool{false, true} {
		p := shared.Start(t).NewPage(t, Options{NoScript: noScript})
		if got := p.Open(url); got != 200 {
			t.Errorf("status %d, want 200", got)
		}
		CheckPage(t, p)
		p.ApplyOptions(Options{Width: 360, Dark: true, NoScript: noScript})
		if got := p.Open(url + "/refuses"); got != 403 {
			t.Errorf("status %d, want 403", got)
		}
		CheckPage(t, p) // a page that refuses is a page
	}
}

func TestACheckWaitsForWhatFadesIn(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(website{body: `<p>1 204 times</p><p class="busy"></p><button>Show</button>`, script: `
		document.querySelector("button").onclick = () => {
		const p = document.createElement("p");
		p.className = "fading";
		p.textContent = "Legible in the end";
		document.querySelector("main").append(p)}`}.serve(t))
	p.WaitFor("1 204 times\n\tShow")
	CheckPage(t, p)
	p.Click("button", "Show")
	CheckPage(t, p) // the text has too little contrast before
}

// reports records what a check reports, in place of a test.
type reports struct {
	testing.TB
	all []string
}

func (r *reports) Errorf(format string, args ...any) {
	r.all = append(r.all, fmt.Sprintf(format, args...))
}

func TestEachFaultOfAPageIsFound(t *testing.T) {
	t.Parallel()
	const noPolicy = "frame-ancestors 'none'"
	foreign := website{}.serve(t)
	pages := map[bool]*Page{}
	for _, noScript := range []bool{false, true} {
		pages[noScript] = shared.Start(t).NewPage(t, Options{Width: 360, NoScript: noScript})
	}
	for name, c := range map[string]struct {
		site     website
		noScript bool
		want     string
	}{
		"inline style":           {website{body: `<p style="color:red">x</p>`}, false, "Applying inline style violates"},
		"inline style, noscript": {website{body: `<p style="color:red">x</p>`}, true, "Applying inline style violates"},
		"inline script":          {website{body: `<script>1</script>`}, false, "Executing inline script violates"},
		"eval":                   {website{script: `eval("1")`}, false, "exception: EvalError"},
		"trusted types":          {website{script: `document.body.innerHTML = "x"`}, false, "requires 'TrustedHTML'"},
		"console error":          {website{script: `console.error("no", {a: 1})`}, false, "console error: no Object"},
		"console warning":        {website{script: `console.warn("careful")`}, false, "console warning: careful"},
		"exception":              {website{script: `null.x`}, false, "exception: TypeError"},
		"rejected promise":       {website{script: `Promise.reject(new Error("gone"))`}, false, "exception: Error: gone"},
		"dialog":                 {website{script: `alert("hello")`}, false, `dialog: alert "hello"`},
		"horizontal scroll":      {website{body: `<p class="wide">x</p>`}, false, `horizontal scroll: [2008 pixels wide in 360 <p class="wide">`},
		"no label":               {website{body: `<input name="a">`}, false, "accessibility label: input"},
		"no label, noscript":     {website{body: `<input name="a">`}, true, "accessibility label: input"},
		"pale text":              {website{body: `<p class="pale">Hardly legible</p>`}, false, "accessibility color-contrast: p"},
		"small target":           {website{body: `<a class="dot" href="/" aria-label="One"></a><a class="dot" href="/refuses" aria-label="Two"></a>`}, false, "accessibility target-size"},
		"skipped heading":        {website{body: `<h4>x</h4>`}, false, "accessibility heading-order: h4"},
		"blocked image":          {website{body: `<img alt="" src="` + foreign + `/a.png">`}, false, "Loading the image"},
		"foreign image":          {website{policy: noPolicy, body: `<img alt="" src="` + foreign + `/a.png">`}, false, "request to another origin: Image " + foreign},
		"foreign frame":          {website{policy: noPolicy, body: `<iframe title="x" src="` + foreign + `"></iframe>`}, false, "request to another origin: Document " + foreign},
		"missing script":         {website{body: `<script src="/none.js"></script>`}, false, "failed load: Script"},
		"missing image":          {website{body: `<img alt="" src="/none.png">`}, false, "none.png: status 404"},
		"failing request":        {website{script: `fetch("/fails").then(() => document.title = "failed")`}, false, "failed load: Fetch"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pages[c.noScript].With(t)
			p.Open(c.site.serve(t))
			if strings.Contains(c.site.script, "title") {
				p.WaitUntil("document.title === 'failed'")
			}
			got := &reports{TB: t, all: p.Complaints()}
			if len(got.all) == 0 {
				CheckPage(got, p)
			}
			if !strings.Contains(strings.Join(got.all, "\n"), c.want) {
				t.Errorf("reports %q, want %q", got.all, c.want)
			}
		})
	}
}

func TestAComplaintFailsTheTestOnce(t *testing.T) {
	t.Parallel()
	url := website{script: `console.error("no")`}.serve(t)
	for name, act := range map[string]func(testing.TB, *Page){
		"the check":           CheckPage,
		"the end of the test": func(_ testing.TB, p *Page) { p.close() },
	} {
		got := &reports{TB: t}
		p := shared.Start(t).NewPage(t, Options{}).With(got)
		p.Open(url)
		act(got, p)
		if len(got.all) != 1 || !strings.Contains(got.all[0], url) || !strings.Contains(got.all[0], "console error: no") {
			t.Errorf("%s reports %q, want the error", name, got.all)
		}
	}
}

func TestAFormIsFilledAndPostedByKeyboard(t *testing.T) {
	t.Parallel()
	url := website{body: form}.serve(t)
	for _, noScript := range []bool{false, true} {
		p := shared.Start(t).NewPage(t, Options{NoScript: noScript})
		p.Open(url)
		for _, want := range []string{`textbox "Label"`, `combobox "Kind"`} {
			p.Press("Tab")
			if got := p.Focused(); got != want {
				t.Errorf("the focus is on %s, want %s", got, want)
			}
		}
		p.Press("Shift+Tab")
		if got := p.Focused(); got != `textbox "Label"` {
			t.Errorf("the focus is on %s, want to be back", got)
		}
		p.Fill("Until", "2026-12-31")
		p.Click("checkbox", "Live")
		p.Fill("Reason", "one\ntwo")
		p.Choose("Kind", "none")
		p.Fill("Label", "Hôtel à Mende?")
		p.Press("Enter")
		if got, want := p.Text(), `Created ["Hôtel à Mende?"] ["none"] ["2026-12-31"] ["on"] ["one\r\ntwo"]`; !strings.Contains(got, want) {
			t.Errorf("JavaScript off %v: got %q, want %q", noScript, got, want)
		}
		if p.Status() != 201 || p.URL() != url+"/create" {
			t.Errorf("status %d at %s", p.Status(), p.URL())
		}
		p.Back()
		if p.URL() != url+"/" || p.Status() != 200 {
			t.Errorf("back at %s with %d, want %s/ with 200", p.URL(), p.Status(), url)
		}
		p.Fill("Label", strings.Repeat("paste ", 100))
		p.Click("button", "Create")
		p.WaitFor("paste paste")
	}
}

func TestTypingSendsTheEventsOfKeys(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(website{body: form + `<p id="out"></p>`, script: `
		const seen = [];
		for (const name of ["keydown", "input", "keyup", "change"])
			document.addEventListener(name, e => { seen.push(name + " " + (e.key || "") + (e.ctrlKey ? "+ctrl" : "")); document.title = seen.join(",") });`}.serve(t))
	p.Fill("Label", "a?")
	p.Press("Control+k")
	p.Press("Escape")
	want := "keydown a,input ,keyup a,keydown ?,input ,keyup ?,keydown k+ctrl,keyup k+ctrl,keydown Escape,keyup Escape"
	if got := p.Eval("document.title"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestAPersonCannotUseWhatIsAmbiguousOrDisabled(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(website{body: `<button>Revoke</button><button>Revoke</button><button hidden>Hidden</button><button disabled>Later</button>`}.serve(t))
	if got, want := p.Names("button"), []string{"Revoke", "Revoke", "Later"}; !slices.Equal(got, want) {
		t.Errorf("buttons %q, want %q", got, want)
	}
	if p.Has("button", "Hidden") || !p.Has("button", "Later") {
		t.Error("a hidden button is shown, or a disabled one is not")
	}
	failed := &fatal{TB: t}
	if message := failed.run(func() { p.With(failed).Click("button", "Revoke") }); !strings.Contains(message, `2 elements are button "Revoke"`) || !strings.Contains(message, p.URL()) {
		t.Errorf("got %q", message)
	}
	if !isPicture(failed.screenshot, 1280) {
		t.Errorf("no screenshot: %q", failed.message)
	}
	p.Eval(`setTimeout(() => document.querySelector("[disabled]").disabled = false, 50)`)
	p.Click("button", "Later") // waits for it
}

// fatal is a test that fails without an end of the real one.
type fatal struct {
	testing.TB
	message    string
	screenshot []byte
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	panic(f)
}

// run returns the message with which act fails the test.
func (f *fatal) run(act func()) string {
	func() {
		defer func() { recover() }()
		act()
	}()
	_, path, _ := strings.Cut(f.message, "screenshot: ")
	f.screenshot, _ = os.ReadFile(path) // none of a tab that has crashed
	os.Remove(path)
	return f.message
}

// isPicture reports whether a file's content is a PNG of a width.
func isPicture(content []byte, width int) bool {
	config, err := png.DecodeConfig(bytes.NewReader(content))
	return err == nil && config.Width == width
}

func TestATabThatCrashesFailsItsTestAtOnce(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(website{}.serve(t))
	p.call("Page.crash", nil, nil)
	failed := &fatal{TB: t}
	if message := failed.run(func() { p.With(failed).Eval("1") }); !strings.Contains(message, errGone.Message) {
		t.Errorf("got %q", message)
	}
}

func TestOptionsReachThePage(t *testing.T) {
	t.Parallel()
	url := website{}.serve(t)
	p := shared.Start(t).NewPage(t, Options{Width: 360, Height: 640, Dark: true, ReducedMotion: true, Print: true, Language: "fr-FR,fr;q=0.9"})
	p.Open(url + "/language")
	for _, media := range []string{"(width: 360px) and (height: 640px)", "(prefers-color-scheme: dark)", "(prefers-reduced-motion: reduce)", "print"} {
		if p.Eval(fmt.Sprintf("matchMedia(%q).matches", media)) != true {
			t.Errorf("%s is not so", media)
		}
	}
	p.WaitFor("fr-FR,fr;q=0.9")
	if got := p.Eval("navigator.language + (1.5).toLocaleString()"); got != "fr-FR1,5" {
		t.Errorf("language %v", got)
	}
	path := filepath.Join(t.TempDir(), "new", "page.png")
	p.Screenshot(path)
	if picture, err := os.ReadFile(path); err != nil || !isPicture(picture, 360) {
		t.Errorf("no screenshot of the whole width: %v", err)
	}
	p.ApplyOptions(Options{})
	if p.Eval(`matchMedia("(width: 1280px) and (prefers-color-scheme: light) and (prefers-reduced-motion: no-preference)").matches`) != true {
		t.Error("the options are not undone")
	}
}

func TestOnlyPagesOfOneContextShareCookies(t *testing.T) {
	t.Parallel()
	b, url := shared.Start(t), website{}.serve(t)
	one, other := b.NewContext(t), b.NewContext(t)
	other.SetCookie(url, &http.Cookie{Name: "planted", Value: "x", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	one.NewPage(Options{}).Open(url + "/cookie")
	for c, want := range map[*Context]string{one: "[session]", other: "[planted]", b.NewContext(t): "[]"} {
		p := c.NewPage(Options{})
		p.Open(url + "/cookie")
		p.WaitFor("sent " + want)
	}
	planted := slices.DeleteFunc(other.Cookies(), func(c *http.Cookie) bool { return c.Name != "planted" })
	if len(planted) != 1 || planted[0].Value != "x" || !planted[0].HttpOnly || planted[0].Secure || planted[0].SameSite != http.SameSiteLaxMode || len(other.Cookies()) != 2 {
		t.Errorf("cookies %v", other.Cookies())
	}
}

func TestTheTabKeyReachesWhatItReaches(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(website{body: `<a href="/">One</a><button disabled>Two</button><div role="button">Three</div><input aria-label="Four"><button>Five</button>`}.serve(t))
	if got, want := p.TabOrder(), []string{`link "One"`, `textbox "Four"`, `button "Five"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.TabTo("textbox", "Four")
	p.TabTo("link", "One") // around the end
	failed := &fatal{TB: t}
	if message := failed.run(func() { p.With(failed).TabTo("button", "Three") }); !strings.Contains(message, `does not reach button "Three"`) {
		t.Errorf("got %q", message)
	}
}

func TestAStreamOfEventsLetsAPageLoadAndEnd(t *testing.T) {
	t.Parallel()
	url := website{body: `<p id="live">waiting</p><a href="/refuses">Leave</a>`, script: `
		const live = document.getElementById("live");
		if (live) new EventSource("/live").onmessage = e => live.textContent = e.data`}.serve(t)
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(url)
	p.WaitFor("event 1")
	p.Reload()
	p.WaitFor("event 1")
	p.Click("link", "Leave")
	p.WaitFor("Refused")
	CheckPage(t, p)
}

func TestAPageSavesAFileAndCopiesAText(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	url := website{
		body:   `<a href="/usage.csv">Save</a> <button>Copy</button>`,
		script: `document.querySelector("button").onclick = () => navigator.clipboard.writeText("é").then(() => document.title = "Copied")`,
	}.serve(t)
	p.Open(url)
	for range 2 {
		if file, content := p.Download("link", "Save"); file != "usage.csv" || string(content) != "day;requests\r\n" {
			t.Errorf("got %s: %q", file, content)
		}
	}
	if requests := p.Requests(); p.URL() != url+"/" || p.Status() != 200 || len(requests) != 3 {
		t.Errorf("the page is %s, status %d, with %v", p.URL(), p.Status(), requests)
	}
	p.Click("button", "Copy")
	p.WaitUntil("document.title === 'Copied'")
	if got := p.Clipboard(); got != "é" {
		t.Errorf("copied %q", got)
	}
}

func TestTrafficIsWhatTheServerSent(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(website{script: strings.Repeat("1;\n", 10_000)}.serve(t) + "/moved")
	got := p.Traffic()
	if got["Document"].Requests != 2 || got["Stylesheet"].Requests != 1 || got["Script"].Requests != 1 || got[""].Requests != 4 {
		t.Errorf("requests %v", got)
	}
	if requests := p.Requests(); requests[0].Status != 303 || requests[1].Status != 200 || p.Status() != 200 {
		t.Errorf("requests %v, status %d", requests, p.Status())
	}
	if size := got["Stylesheet"].Bytes; size != len(style) {
		t.Errorf("%d bytes of style, want %d", size, len(style))
	}
	if size := got["Script"].Bytes; size < 50 || size > 200 {
		t.Errorf("%d bytes of script: not the compressed length", size)
	}
}

func TestTheAccessibilityTreeIsText(t *testing.T) {
	t.Parallel()
	p := shared.Start(t).NewPage(t, Options{})
	p.Open(website{body: `<nav aria-label="Sections"><a href="/usage" aria-current="page">Usage</a> <a href="https://example.org/">Out</a></nav>` + form +
		`<table><tr><th>Key<th>Use<tr><td>web<td>12</table><details><summary>More</summary><p>Text</p></details>
		<p role="alert">Too <b>long</b></p><input aria-label="Name" aria-invalid="true" required aria-describedby="d"><p id="d">Two words</p>`}.serve(t))
	want := strings.TrimLeft(wantedTree, "\n")
	if got := AccessibilityTree(p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const wantedTree = `
RootWebArea "Keys"
  main
    heading "Keys" level=1
    navigation "Sections"
      link "Usage" url=/usage
      link "Out" url=https://example.org/
    form
      LabelText
        StaticText "Label"
        textbox "Label" value="old"
      LabelText
        StaticText "Kind"
        combobox "Kind" value="secret" expanded=false hasPopup=menu
          option "secret" selected=true
          option "publishable" selected=false
          option "both" disabled=true
          option "none" selected=false
      LabelText
        StaticText "Until"
        Date "Until"
      checkbox "Live" checked=false
      LabelText
        StaticText "Reason"
        textbox "Reason"
      button "Create"
    table
      row
        columnheader "Key"
        columnheader "Use"
      row
        cell "web"
        cell "12"
    group
      DisclosureTriangle "More" expanded=false
    alert live=assertive
      StaticText "Too"
      StaticText "long"
    textbox "Name" description="Two words" required=true invalid=true
    paragraph
      StaticText "Two words"
`
