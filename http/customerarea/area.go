package customerarea

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/schemas/body"
)

// Area is the customer area: the handler of its JSON operations, and the same operations for the web pages. A page asks for
// operations with Do alone, so it can do nothing that the JSON cannot.
type Area struct {
	http.Handler
	rows *handler
}

// Do carries out the operation of a method and a path below Base, with its query, for a principal. in is the body of the request, or
// nil; the JSON of the answer is decoded into out, unless that is nil. The checks are those of a request with a token, and so are the
// errors: a refusal, or a problem.Problem with the violations of a body.
func (a *Area) Do(ctx context.Context, p Principal, method, target string, in, out any) error {
	var text []byte
	if in != nil {
		var err error
		if text, err = kit.MarshalJSON(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, Base+target, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("request %s %s: %w", method, target, err)
	}
	if key, ok := ctx.Value(idempotencyKey{}).(string); ok {
		r.Header.Set(kit.IdempotencyHeader, key)
	}
	answer := recorder{header: http.Header{}}
	if err := a.send(&answer, r, p); err != nil {
		return err
	}
	if answer.isAborted {
		return fmt.Errorf("%s %s: the answer broke off", method, target)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.text.Bytes(), out)
}

// idempotencyKey is the key of WithIdempotencyKey in a context.
type idempotencyKey struct{}

// WithIdempotencyKey gives the operations of a context the header Idempotency-Key: those that know it do the same once.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

// Send answers a request with the file that an operation streams, such as an export. An error means that nothing was sent.
func (a *Area) Send(w http.ResponseWriter, r *http.Request, p Principal, target string) error {
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, Base+target, http.NoBody)
	if err != nil {
		return fmt.Errorf("request GET %s: %w", target, err)
	}
	inner.Header = r.Header
	return a.send(w, inner, p)
}

func (a *Area) send(w http.ResponseWriter, r *http.Request, p Principal) error {
	reservation := budget.NewAnswer(r.Context(), a.rows.Answers)
	defer reservation.Release()
	v, err := a.rows.do(r, p, reservation)
	if err != nil {
		return err
	}
	return v.Write(r.Context(), w)
}

// May reports whether a principal may use the operation of a method and a path below Base.
func (a *Area) May(ctx context.Context, p Principal, method, target string) bool {
	r, err := http.NewRequestWithContext(ctx, method, Base+target, http.NoBody)
	if err != nil {
		return false
	}
	rt, vars, err := a.rows.table.Match(r, false)
	return err == nil && a.rows.authorize(ctx, p, rt, vars["id"]) == nil
}

// Authenticate returns what the cookie of a request gives. It fails with refusal.KeyRequired without a cookie, with
// refusal.KeyInvalid if the session has ended, and with refusal.AuthUnavailable while the log does not answer.
func (a *Area) Authenticate(r *http.Request) (Principal, error) { return a.rows.authenticateSession(r) }

// Enter opens a session with a link or a token, and sets its cookie. It returns once every request with the cookie is answered.
func (a *Area) Enter(w http.ResponseWriter, r *http.Request, proof string) (body.Session, error) {
	made, err := a.rows.enter(w, r, proof)
	return a.rows.toSession(made), err
}

// Leave deletes the cookie of a session. It does not end the session.
func (a *Area) Leave(w http.ResponseWriter) {
	http.SetCookie(w, a.rows.Address.cookie("", time.Time{}))
}

// recorder keeps an answer in memory. Streams that are aborted say so by a write deadline.
type recorder struct {
	header    http.Header
	text      bytes.Buffer
	isAborted bool
}

func (r *recorder) Header() http.Header              { return r.header }
func (r *recorder) WriteHeader(int)                  {}
func (r *recorder) Write(p []byte) (int, error)      { return r.text.Write(p) }
func (r *recorder) SetWriteDeadline(time.Time) error { r.isAborted = true; return nil }
