package connlimit

import (
	"io"
	"net/http"
	"time"

	"lieudit/http/budget"
)

// maxIgnored is how many bytes of an unread body are discarded after a successful answer, so that the connection can be
// kept. After a refusal (status 400 and above) the limit is budget.SmallBody.
const maxIgnored = 256 << 10

// handler wraps the server's handler. It makes request bodies PacedReaders, which limit how slowly a client may send. Once a
// request is answered, it discards a small rest of the body and keeps the connection, or closes the connection if the rest is
// large. A request without a body, or on a connection that is not a *conn, passes through unchanged.
type handler struct{ next http.Handler }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		h.next.ServeHTTP(w, r)
		return
	}
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		h.next.ServeHTTP(w, r)
		return
	}
	x := &exchange{ResponseWriter: w, conn: c, body: &PacedReader{ReadCloser: r.Body, SetReadDeadline: c.SetReadDeadline}}
	x.declared, x.expects = r.ContentLength, r.Header.Get("Expect") != ""
	paced := *r // a copy: net/http looks at the type of the body in its own request
	paced.Body = x.body
	h.next.ServeHTTP(x, &paced)
	x.finish()
}

// exchange is a request with a body, and its answer. It is the http.ResponseWriter of the wrapped handler.
type exchange struct {
	http.ResponseWriter
	conn     *conn
	body     *PacedReader
	declared int64 // length of the body; -1 if it is not known
	expects  bool  // Expect: 100-continue: the client waits before it sends the body

	status      int
	disposition disposition
	drainLimit  int64 // bytes of the body that may be discarded after the answer
}

// disposition is what happens to a connection once the answer is written.
type disposition int

const (
	keepOpen        disposition = iota // the server decides, as usual
	drainThenKeep                      // kept if drainBody reaches the end of the body, otherwise closed
	lingerThenClose                    // closed by lingerAndClose; the answer has the header "Connection: close"
)

// WriteHeader decides what happens to a body that was not read to its end, before the header is sent: the decision may
// add "Connection: close" to it.
func (x *exchange) WriteHeader(status int) {
	if x.status != 0 || status < http.StatusOK {
		x.ResponseWriter.WriteHeader(status)
		return
	}
	x.status = status
	if read, err := x.body.Progress(); err != io.EOF {
		x.decideDisposition(read, err)
	}
	x.ResponseWriter.WriteHeader(status)
	if x.disposition == keepOpen {
		return
	}
	// Only the server can end an answer whose length is not known, so the connection is left to it. On Flush the server discards
	// a small rest of the body itself: the deadline limits that.
	if !x.hasKnownEnd() {
		x.disposition = keepOpen
		x.conn.SetReadDeadline(time.Now().Add(maxLinger))
		http.NewResponseController(x.ResponseWriter).Flush()
		x.conn.SetReadDeadline(time.Time{})
	}
}

// decideDisposition sets disposition and drainLimit from how many bytes of the body were read, and the error that ended
// reading.
func (x *exchange) decideDisposition(read int64, err error) {
	x.drainLimit = budget.SmallBody
	if x.status < http.StatusBadRequest {
		x.drainLimit = maxIgnored
	}
	if x.expects || err != nil || max(read, x.declared) > x.drainLimit {
		x.disposition = lingerThenClose
		x.Header().Set("Connection", "close")
		return
	}
	x.disposition = drainThenKeep
	if x.hasKnownEnd() { // send the answer without reading the body first
		http.NewResponseController(x.ResponseWriter).EnableFullDuplex()
	}
}

// hasKnownEnd reports whether the client can tell the end of the answer from its header alone.
func (x *exchange) hasKnownEnd() bool {
	return x.status == http.StatusNoContent || x.Header().Get("Content-Length") != ""
}

// Write implements http.ResponseWriter. Like net/http it begins an answer without a status as 200.
func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(p)
}

// FlushError is the method that http.ResponseController looks for. It writes the status first if none was written.
func (x *exchange) FlushError() error {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Unwrap is the method that http.ResponseController looks for.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// finish sends the answer, and then keeps, drains or closes the connection, as its disposition says.
func (x *exchange) finish() {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if x.disposition == keepOpen {
		return
	}
	x.FlushError()
	if x.disposition == drainThenKeep && x.drainBody() {
		return
	}
	x.conn.lingerAndClose()
	panic(http.ErrAbortHandler) // how a handler tells the server that the connection is closed; it is not logged
}

// drainBody discards the rest of a small body. It returns false if the rest is larger than drainLimit or takes longer than
// maxLinger. The connection counts as idle meanwhile.
func (x *exchange) drainBody() bool {
	x.conn.setIdle(true)
	defer x.conn.setIdle(false)
	x.conn.SetReadDeadline(time.Now().Add(maxLinger))
	defer x.conn.SetReadDeadline(time.Time{})
	_, err := io.CopyN(io.Discard, x.body.ReadCloser, x.drainLimit+1)
	return err == io.EOF
}
