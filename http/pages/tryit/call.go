package tryit

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"lieudit/http/pages/docs/reference"
)

// call is a request to the API, without its key.
type call struct {
	reference.ExampleRequest
	headers [][2]string // besides the key, Origin and Content-Type
}

// newCall makes the request of a form. Empty fields are left out. A list has a value a line.
func newCall(t trial) call {
	path := t.Method.Path
	for _, v := range t.Method.Variables {
		path = strings.Replace(path, "{"+v.Name+"}", escapeVariable(t.Form.Value(pathPrefix+v.Name)), 1)
	}
	var query []string
	for _, f := range t.Method.Query {
		values := []string{t.Form.Value(queryPrefix + f.Name)}
		if f.IsList {
			values = t.Form.Lines(queryPrefix + f.Name)
		}
		for _, value := range values {
			if value != "" {
				query = append(query, url.QueryEscape(f.Name)+"="+url.QueryEscape(value))
			}
		}
	}
	c := call{ExampleRequest: reference.ExampleRequest{Method: t.Method.Method, Target: path}}
	if len(query) > 0 {
		c.Target += "?" + strings.Join(query, "&")
	}
	if t.Operation.TakesPages {
		c.Origin = oneLine(t.Form.Value(originField))
	}
	if t.Method.Body != nil {
		c.Body, c.MediaType = t.Form.Value(bodyField), "application/json"
	}
	for _, f := range t.Method.Headers {
		if value := oneLine(t.Form.Value(headerPrefix + f.Name)); value != "" {
			c.headers = append(c.headers, [2]string{f.Name, value})
		}
	}
	return c
}

// oneLine is a text that can be the value of a header.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// escapeVariable writes a variable of a path. A colon is escaped, since one before the last word would make it an action.
func escapeVariable(text string) string {
	return strings.ReplaceAll(url.PathEscape(text), ":", "%3A")
}

// forwardedHeaders name the client behind a proxy, for the API as for the customer area.
var forwardedHeaders = []string{"X-Forwarded-For", "Forwarded"}

// send has the API answer a request, and returns how long that took. The API sees the address of whoever asks, and no cookie.
func (p *Page) send(ctx context.Context, from *http.Request, c call, key string) (*recorder, time.Duration) {
	answer := &recorder{header: http.Header{}}
	r, err := http.NewRequestWithContext(ctx, c.Method, reference.API().BasePath+c.Target, strings.NewReader(c.Body))
	if err != nil { // not a path: it has a control character, for example
		answer.WriteHeader(http.StatusBadRequest)
		return answer, 0
	}
	r.RemoteAddr, r.Host = from.RemoteAddr, from.Host
	for _, name := range forwardedHeaders {
		r.Header[name] = slices.Clone(from.Header[name])
		if r.Header[name] == nil {
			delete(r.Header, name)
		}
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for name, value := range map[string]string{"Origin": c.Origin, "Content-Type": c.MediaType} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	for _, h := range c.headers {
		r.Header.Set(h[0], h[1])
	}
	began := time.Now()
	p.api.ServeHTTP(answer, r)
	return answer, time.Since(began)
}

// newResult is what the page shows of an answer.
func newResult(op *reference.Operation, c call, answer *recorder, elapsed time.Duration, api string) *result {
	server := reference.Server{URL: api + reference.API().BasePath, KeyVariable: "LIEUDIT_KEY"}
	r := &result{
		Status: answer.statusCode(), MediaType: answer.header.Get("Content-Type"), IsCut: answer.isCut, Elapsed: elapsed,
		Curl: reference.Curl(reference.Example{Operation: op.Slug, Request: c.ExampleRequest}, c.headers, server),
	}
	r.StatusText = http.StatusText(r.Status)
	r.Answer = answer.text.String()
	if !r.IsCut {
		r.Answer = reference.IndentJSON(r.Answer)
	}
	r.IsCounted = r.Status < 300 || slices.Contains([]int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}, r.Status)
	r.IsCounted = r.IsCounted && !op.IsPublic
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.1\n", c.Method, reference.API().BasePath+c.Target)
	if !op.IsPublic {
		head.WriteString("Authorization: Bearer ••••••\n")
	}
	for _, h := range append([][2]string{{"Origin", c.Origin}, {"Content-Type", c.MediaType}}, c.headers...) {
		if h[1] != "" {
			fmt.Fprintf(&head, "%s: %s\n", h[0], h[1])
		}
	}
	if c.Body != "" {
		head.WriteString("\n" + c.Body)
	}
	r.Request = strings.TrimSpace(head.String())
	return r
}

// maxShown is how many bytes of an answer the page shows.
const maxShown = 32 << 10

// recorder keeps the beginning of an answer. The API ends a stream that breaks off by a write deadline.
type recorder struct {
	header http.Header
	status int
	text   bytes.Buffer
	isCut  bool
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	kept := p[:min(len(p), maxShown-r.text.Len())]
	r.text.Write(kept)
	r.isCut = r.isCut || len(kept) < len(p)
	return len(p), nil
}

func (r *recorder) SetWriteDeadline(time.Time) error { r.isCut = true; return nil }

// Flush does nothing: the answer is shown whole.
func (r *recorder) Flush() {}

func (r *recorder) statusCode() int {
	r.WriteHeader(http.StatusOK)
	return r.status
}
