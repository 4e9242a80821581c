package connection

import (
	"io"
	"net/http"
	"time"

	"lieudit/http/bodies"
)

// maxIgnored is how much of a body that no one asked for is read after an answer that is no refusal, so that the connection
// can be kept. After a refusal it is bodies.Small: a larger body is not read.
const maxIgnored = 256 << 10

// handler sees to the bodies of requests on the connections of a Listener: they are paced, and what an answer left unread
// is read after it where it is little; else the connection closes, as the answer says.
type handler struct{ next http.Handler }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		h.next.ServeHTTP(w, r)
		return
	}
	c, ok := r.Context().Value(key{}).(*conn)
	if !ok {
		h.next.ServeHTTP(w, r)
		return
	}
	x := &exchange{ResponseWriter: w, conn: c, body: &bodies.Paced{ReadCloser: r.Body, SetReadDeadline: c.SetReadDeadline}}
	x.declared, x.expects = r.ContentLength, r.Header.Get("Expect") != ""
	paced := *r // the server knows a body by its type
	paced.Body = x.body
	h.next.ServeHTTP(x, &paced)
	x.finish()
}

// exchange is a request with a body, and its answer.
type exchange struct {
	http.ResponseWriter
	conn     *conn
	body     *bodies.Paced
	declared int64 // length of the body; -1: not known
	expects  bool  // the client sends the body when it is told to

	status int
	after  after
	unread int64 // how much of the body may be read after the answer
}

// after is what becomes of a connection once the answer is written.
type after int

const (
	kept     after = iota // the server goes on with it
	drained               // it is kept if the rest of the body is little and comes in time
	lingered              // it is closed, as the answer says
)

// WriteHeader decides what becomes of a body that was not read to its end.
func (x *exchange) WriteHeader(status int) {
	if x.status != 0 || status < http.StatusOK {
		x.ResponseWriter.WriteHeader(status)
		return
	}
	x.status = status
	if read, err := x.body.Progress(); err != io.EOF {
		x.settle(read, err)
	}
	x.ResponseWriter.WriteHeader(status)
	if x.after == kept {
		return
	}
	if !x.isWhole() { // its end is the server's to write: the server reads what is little before the answer, in time
		x.after = kept
		x.conn.SetReadDeadline(time.Now().Add(maxLinger))
		http.NewResponseController(x.ResponseWriter).Flush()
		x.conn.SetReadDeadline(time.Time{})
	}
}

// settle decides by what was read of the body, and how that ended.
func (x *exchange) settle(read int64, err error) {
	x.unread = bodies.Small
	if x.status < http.StatusBadRequest {
		x.unread = maxIgnored
	}
	if x.expects || err != nil || max(read, x.declared) > x.unread {
		x.after = lingered
		x.Header().Set("Connection", "close")
		return
	}
	x.after = drained
	if x.isWhole() { // it does not wait for the body
		http.NewResponseController(x.ResponseWriter).EnableFullDuplex()
	}
}

// isWhole says whether the answer ends by itself.
func (x *exchange) isWhole() bool {
	return x.status == http.StatusNoContent || x.Header().Get("Content-Length") != ""
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController: what is flushed has a status.
func (x *exchange) FlushError() error {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// finish sends the answer, and then reads what was left of the body, or closes the connection.
func (x *exchange) finish() {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if x.after == kept {
		return
	}
	x.FlushError()
	if x.after == drained && x.drain() {
		return
	}
	x.conn.linger()
	panic(http.ErrAbortHandler) // the connection is closed
}

// drain reads what is left of a small body; it is false where that does not come in time. The connection counts as idle
// meanwhile.
func (x *exchange) drain() bool {
	x.conn.setIdle(true)
	defer x.conn.setIdle(false)
	x.conn.SetReadDeadline(time.Now().Add(maxLinger))
	defer x.conn.SetReadDeadline(time.Time{})
	_, err := io.CopyN(io.Discard, x.body.ReadCloser, x.unread+1)
	return err == io.EOF
}
