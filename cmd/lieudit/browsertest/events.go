package browsertest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// exception is an exception that no script caught.
type exception struct {
	Text      string
	Exception *struct{ Description string }
	URL       string
	Line      int `json:"lineNumber"`
}

func (e *exception) String() string {
	text := e.Text
	if e.Exception != nil && e.Exception.Description != "" {
		text = e.Exception.Description
	}
	if e.URL != "" {
		text += fmt.Sprintf(" (%s:%d)", e.URL, e.Line+1)
	}
	return text
}

// handleEvent keeps what an event of the tab tells. It runs in the goroutine that reads from Chromium.
func (p *tab) handleEvent(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method, _, _ := strings.Cut(m.Method, "."); method {
	case "Page":
		p.handlePageEvent(m)
	case "Network":
		p.handleNetworkEvent(m)
	case "Runtime", "Log":
		p.handleLogEvent(m)
	}
}

func (p *tab) handlePageEvent(m message) {
	var e struct {
		FrameID     string
		Frame       struct{ ID, LoaderID, URL, URLFragment string }
		Type        string
		Message     string
		URL         string
		Disposition string
		download
	}
	json.Unmarshal(m.Params, &e)
	switch m.Method {
	case "Page.frameRequestedNavigation":
		p.isLoading = p.isLoading || e.FrameID == p.frame && e.Disposition == "currentTab"
	case "Page.frameStartedLoading":
		p.isLoading = p.isLoading || e.FrameID == p.frame
	case "Page.frameStoppedLoading":
		p.isLoading = p.isLoading && e.FrameID != p.frame
	case "Page.frameNavigated":
		if e.Frame.ID == p.frame {
			p.url, p.loader, p.axeWorld, p.isExpected = e.Frame.URL+e.Frame.URLFragment, e.Frame.LoaderID, 0, false
		}
	case "Page.navigatedWithinDocument":
		if e.FrameID == p.frame {
			p.url, p.isExpected = e.URL, false
		}
	case "Page.downloadWillBegin":
		p.downloads = append(p.downloads, &e.download)
	case "Page.downloadProgress":
		for _, d := range p.downloads {
			if d.GUID == e.GUID {
				d.State = e.State
			}
		}
	case "Page.javascriptDialogOpening":
		p.complain("dialog", "%s %q", e.Type, e.Message)
		p.browser.send(p.session, "Page.handleJavaScriptDialog", object{"accept": true}) // otherwise the page stays blocked
	}
}

func (p *tab) handleLogEvent(m message) {
	var e struct {
		Type             string
		Args             []struct{ Value, Description any }
		ExceptionDetails *exception
		Entry            struct{ Source, Level, Text, URL string }
	}
	json.Unmarshal(m.Params, &e)
	switch {
	case m.Method == "Runtime.exceptionThrown" && e.ExceptionDetails != nil:
		p.complain("exception", "%s", e.ExceptionDetails)
	case m.Method == "Runtime.consoleAPICalled" && slices.Contains([]string{"error", "warning", "assert"}, e.Type):
		var words []string
		for _, a := range e.Args {
			if a.Value == nil {
				a.Value = a.Description
			}
			words = append(words, fmt.Sprint(a.Value))
		}
		p.complain("console "+e.Type, "%s", strings.Join(words, " "))
	case m.Method == "Log.entryAdded" && e.Entry.Source != "network" && (e.Entry.Level == "error" || e.Entry.Level == "warning"):
		p.complain(e.Entry.Source+" "+e.Entry.Level, "%s", strings.TrimSpace(e.Entry.Text+" "+e.Entry.URL))
	}
}

// complain records something that must not happen.
func (p *tab) complain(kind, format string, args ...any) {
	p.complaints = append(p.complaints, kind+": "+fmt.Sprintf(format, args...))
}

// Complaints returns what must not happen and has happened since the last call: errors and warnings on the console, uncaught
// exceptions, violations of the Content Security Policy, dialogs, requests to other origins, and loads that failed. A status
// of 400 or more is a failed load of a picture, style sheet, script or font. It is not one of a page, which a test may want
// to see, nor of a script's own request, unless it is 500 or more.
func (p *Page) Complaints() []string {
	p.evaluate("0", 0) // the events before the answer have arrived then
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.complaints
	p.complaints = nil
	return all
}

// Request is one request that a document made, or the one for the document itself.
type Request struct {
	URL    string
	Type   string // as Chromium names it: Document, Stylesheet, Script, Image, Font, Fetch, EventSource, Other
	Status int
	// Bytes is the length of the body as it was transferred, that is compressed. It is 0 for an answer from the cache.
	Bytes  int
	head   int    // the length of the status line and the header
	loader string // the document
}

// Traffic is the number and the size of requests of one type.
type Traffic struct{ Requests, Bytes int }

// Requests are the requests of the current document so far, in order. The redirects that led to it are among them.
func (p *Page) Requests() (all []Request) {
	p.evaluate("0", 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r.loader == p.loader {
			all = append(all, *r)
		}
	}
	return all
}

// Traffic sums the requests by type. The type "" is all of them.
func (p *Page) Traffic() map[string]Traffic {
	sums := map[string]Traffic{}
	for _, r := range p.Requests() {
		for _, key := range []string{r.Type, ""} {
			s := sums[key]
			sums[key] = Traffic{s.Requests + 1, s.Bytes + r.Bytes}
		}
	}
	return sums
}

// networkResponse is an answer's beginning.
type networkResponse struct {
	Status            int
	EncodedDataLength float64
	FromDiskCache     bool
}

func (p *tab) handleNetworkEvent(m message) {
	var e struct {
		RequestID, LoaderID, FrameID, Type string
		DocumentURL                        string
		Request                            struct{ URL string }
		RedirectResponse, Response         *networkResponse
		EncodedDataLength                  float64
		ErrorText, BlockedReason           string
		Canceled                           bool
	}
	json.Unmarshal(m.Params, &e)
	r := p.byID[e.RequestID]
	switch m.Method {
	case "Network.requestWillBeSent":
		isDocument := e.Type == "Document" && e.FrameID == p.frame
		if r != nil && e.RedirectResponse != nil {
			r.Status = e.RedirectResponse.Status
		}
		p.addRequest(e.RequestID, &Request{URL: e.Request.URL, Type: e.Type, loader: e.LoaderID})
		if e.Type == "Document" { // of a frame, which names itself as the document
			e.DocumentURL = p.url
		}
		if !isDocument && isForeign(e.Request.URL, e.DocumentURL) {
			p.complain("request to another origin", "%s %s", e.Type, e.Request.URL)
		}
	case "Network.responseReceived":
		if r != nil && e.Response != nil {
			r.Type, r.Status, r.head = e.Type, e.Response.Status, int(e.Response.EncodedDataLength)
			p.handleStatus(r, e.FrameID)
		}
	case "Network.loadingFinished":
		if r != nil && e.EncodedDataLength > 0 {
			r.Bytes = int(e.EncodedDataLength) - r.head
		}
	case "Network.loadingFailed":
		if r != nil && !e.Canceled && e.BlockedReason != "csp" { // the policy's violation is a complaint of its own
			p.complain("failed load", "%s %s: %s %s", r.Type, r.URL, e.ErrorText, e.BlockedReason)
		}
	}
}

func (p *tab) addRequest(id string, r *Request) {
	if p.byID == nil {
		p.byID = map[string]*Request{}
	}
	p.requests = append(p.requests, r)
	p.byID[id] = r
}

// handleStatus complains about an answer that is an error, unless a test may want it.
func (p *tab) handleStatus(r *Request, frame string) {
	limit := 400
	switch r.Type {
	case "Document":
		if frame == p.frame {
			return
		}
	case "Fetch", "XHR", "EventSource":
		limit = 500
	}
	if r.Status >= limit {
		p.complain("failed load", "%s %s: status %d", r.Type, r.URL, r.Status)
	}
}

// isForeign reports whether a request leaves the origin of the document that made it.
func isForeign(request, document string) bool {
	r, err := url.Parse(request)
	d, err2 := url.Parse(document)
	if err != nil || err2 != nil {
		return true
	}
	isNetwork := r.Scheme != "data" && r.Scheme != "blob" && r.Scheme != "about"
	return isNetwork && (r.Scheme != d.Scheme || r.Host != d.Host)
}
