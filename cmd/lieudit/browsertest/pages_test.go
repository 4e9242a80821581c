package browsertest

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

var shared Shared

// strictPolicy is the Content Security Policy of the pages here, unless a test needs another.
const strictPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

// website is a small site with a form. Its zero value has no fault.
type website struct {
	policy string // strictPolicy if empty
	body   string // of the page at /
	script string // of the page at /, in a file
}

const form = `<form method="post" action="/create">
	<label>Label <input name="label" value="old"></label>
	<label>Kind <select name="kind"><option>secret<option>publishable<option disabled>both<option>none</select></label>
	<label>Until <input name="until" type="date"></label>
	<label><input type="checkbox" name="live"> Live</label>
	<label>Reason <textarea name="reason"></textarea></label>
	<button>Create</button></form>`

// writePage writes a page without a fault around a body.
func (s website) writePage(w http.ResponseWriter, status int, body string) {
	policy := s.policy
	if policy == "" {
		policy = strictPolicy
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
		<title>Keys</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"><script src="/script.js" defer></script></head>
		<body><main><h1>Keys</h1>%s</main></body></html>`, body)
}

const style = `button, input, select { min-height: 30px } body { color: #000; background: #fff }
	.wide { width: 2000px } .box { overflow-x: auto } .pale { color: #ddd } .dot { display: inline-block; width: 8px; height: 8px }
	.fading { animation: fade 2s step-end } .busy { animation: fade 1s infinite } @keyframes fade { from { opacity: .05 } }
	@media (prefers-color-scheme: dark) { body { color: #fff; background: #000 } }`

// serve serves the site until the test ends.
func (s website) serve(t testing.TB) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { s.writePage(w, http.StatusOK, s.body) })
	mux.HandleFunc("GET /language", func(w http.ResponseWriter, r *http.Request) {
		s.writePage(w, http.StatusOK, "<p>"+r.Header.Get("Accept-Language")+"</p>")
	})
	mux.HandleFunc("GET /cookie", func(w http.ResponseWriter, r *http.Request) {
		var names []string
		for _, c := range r.Cookies() {
			names = append(names, c.Name)
		}
		body := fmt.Sprintf("<p>sent %s</p>", names)
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "x", HttpOnly: true})
		s.writePage(w, http.StatusOK, body)
	})
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/css")
		fmt.Fprint(w, style)
	})
	mux.HandleFunc("GET /script.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		fmt.Fprint(packed, s.script)
		packed.Close()
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: event 1\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /fails", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
	mux.HandleFunc("GET /refuses", func(w http.ResponseWriter, r *http.Request) {
		s.writePage(w, http.StatusForbidden, "<p>Refused</p>")
	})
	mux.HandleFunc("GET /moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) })
	mux.HandleFunc("GET /usage.csv", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
		fmt.Fprint(w, "day;requests\r\n")
	})
	mux.HandleFunc("POST /create", func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		s.writePage(w, http.StatusCreated, fmt.Sprintf("<p>Created %q %q %q %q %q</p>",
			r.Form["label"], r.Form["kind"], r.Form["until"], r.Form["live"], r.Form["reason"]))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections() // a page that the browser keeps in memory has its stream still
		server.Close()
	})
	return server.URL
}
