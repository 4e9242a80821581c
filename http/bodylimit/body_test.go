package bodylimit_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/bodylimit"
	"lieudit/http/budget"
)

const limit = 4 * bodylimit.Small

// body is a request with a body of some bytes and a declared length.
func request(bytes int, declared int64) (*http.Request, *strings.Reader) {
	sent := strings.NewReader(strings.Repeat("x", bytes))
	r := httptest.NewRequest("POST", "/", sent)
	r.ContentLength = declared
	return r, sent
}

func TestALargeBodyTakesItsShareAndASmallOneNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what     string
		bytes    int
		declared int64
		want     int64 // of the budget
	}{
		{"none", 0, 0, 0},
		{"small", bodylimit.Small, bodylimit.Small, 0},
		{"large", bodylimit.Small + 1, bodylimit.Small + 1, bodylimit.Small + 1},
		{"at the limit", limit, limit, limit},
		{"small, of unknown length", bodylimit.Small, -1, 0},
		{"large, of unknown length", bodylimit.Small + 1, -1, limit},
	} {
		b := budget.New(1<<30, 1<<30)
		r, _ := request(c.bytes, c.declared)
		release := bodylimit.Limit(b, r, bodylimit.Admission{Account: "a", Limit: limit})
		got, err := io.ReadAll(r.Body)
		if err != nil || len(got) != c.bytes {
			t.Errorf("%s: read %d bytes, %v", c.what, len(got), err)
		}
		if used := b.Status().Used; used != c.want {
			t.Errorf("%s: %d bytes of the budget are in use, want %d", c.what, used, c.want)
		}
		release()
		if used := b.Status().Used; used != 0 {
			t.Errorf("%s: %d bytes are not given back", c.what, used)
		}
	}
}

func TestABudgetMayCountSomethingOtherThanBytes(t *testing.T) {
	t.Parallel()
	b := budget.New(1, 1)
	first, _ := request(limit, limit)
	release := bodylimit.Limit(b, first, bodylimit.Admission{Account: "a", Limit: limit, Cost: 1})
	if _, err := io.ReadAll(first.Body); err != nil || b.Status().Used != 1 {
		t.Errorf("%d of the budget are in use, %v, want 1", b.Status().Used, err)
	}
	release()
	if used := b.Status().Used; used != 0 {
		t.Errorf("%d are not given back", used)
	}
}

func TestNothingOfALargeBodyIsReadThatIsNotAdmitted(t *testing.T) {
	t.Parallel()
	refusal := errors.New("not now")
	tooLarge := new(http.MaxBytesError)
	for _, c := range []struct {
		what     string
		bytes    int
		declared int64
		allow    error
		held     int64
		want     any
		read     int
	}{
		{"refused", limit, limit, refusal, 0, &refusal, 0},
		{"refused, of unknown length", limit, -1, refusal, 0, &refusal, bodylimit.Small + 1},
		{"over the limit, by its own account", limit + 1, limit + 1, nil, 0, &tooLarge, 0},
		{"over the account's part", limit, limit, nil, 1, nil, 0},
	} {
		b := budget.New(limit, limit-c.held)
		r, sent := request(c.bytes, c.declared)
		asked := 0
		defer bodylimit.Limit(b, r, bodylimit.Admission{Account: "a", Limit: limit, Allow: func() error { asked++; return c.allow }})()
		_, err := io.ReadAll(r.Body)
		if c.want == nil && !errors.Is(err, budget.ErrOverloaded) || c.want != nil && !errors.As(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
		if read := c.bytes - sent.Len(); read != c.read {
			t.Errorf("%s: %d bytes were read, want %d", c.what, read, c.read)
		}
		if _, again := r.Body.Read(make([]byte, 1)); again != err || asked > 1 {
			t.Errorf("%s: asked again it says %v, after %d questions", c.what, again, asked)
		}
	}
}

func TestABodyLongerThanTheLimitIsReadUpToIt(t *testing.T) {
	t.Parallel()
	b := budget.New(2*limit, 2*limit)
	r, _ := request(limit+1, -1)
	defer bodylimit.Limit(b, r, bodylimit.Admission{Limit: limit})()
	got, err := io.ReadAll(r.Body)
	if tooLarge := new(http.MaxBytesError); !errors.As(err, &tooLarge) || len(got) != limit {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

// trickleBody is a body that comes in pieces, one at a time after a pause, and the connection whose deadline it keeps.
type trickleBody struct {
	piece    int
	pause    time.Duration
	left     int
	deadline time.Time
}

func (c *trickleBody) SetReadDeadline(at time.Time) error { c.deadline = at; return nil }
func (c *trickleBody) Close() error                       { return nil }

func (c *trickleBody) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	if until := time.Until(c.deadline); until < c.pause {
		time.Sleep(until)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(c.pause)
	n := min(c.piece, c.left, len(p))
	c.left -= n
	return n, nil
}

func TestABodyHasToCome(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		what  string
		sent  trickleBody
		slow  bool
		ended time.Duration
	}{
		{"at once", trickleBody{piece: mib, left: 8 * mib}, false, 0},
		{"at 64 KiB a second", trickleBody{piece: 64 << 10, pause: time.Second, left: 8 * mib}, false, 128 * time.Second},
		{"at a little less", trickleBody{piece: 63 << 10, pause: time.Second, left: 8 * mib}, true, 30 * time.Second},
		{"a byte at a time", trickleBody{piece: 1, pause: 10 * time.Second, left: 1000}, true, 30 * time.Second},
		{"a small one within the time", trickleBody{piece: 1, pause: 10 * time.Second, left: 2}, false, 20 * time.Second},
		{"never", trickleBody{pause: time.Hour, left: 1}, true, 30 * time.Second},
		{"fast, with pauses below the limit", trickleBody{piece: 4 * mib, pause: 29 * time.Second, left: 16 * mib}, false, 116 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p := &bodylimit.PacedReader{ReadCloser: &c.sent, SetReadDeadline: c.sent.SetReadDeadline}
			_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, p, make([]byte, 8*mib))
			if errors.Is(err, bodylimit.ErrSlow) != c.slow || time.Since(began) != c.ended {
				t.Errorf("%s: %v after %v, want after %v", c.what, err, time.Since(began), c.ended)
			}
			if err == nil && !c.sent.deadline.IsZero() {
				t.Errorf("%s: a deadline stays when the body has come", c.what)
			}
		})
	}
}

func TestAClientThatStopsIsNotWaitedForLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := &trickleBody{piece: 4 << 20, left: 8 << 20}
		p := &bodylimit.PacedReader{ReadCloser: sent, SetReadDeadline: sent.SetReadDeadline}
		if _, err := p.Read(make([]byte, 4<<20)); err != nil {
			t.Fatal(err)
		}
		sent.pause = time.Hour
		began := time.Now()
		_, err := p.Read(make([]byte, 1))
		if !errors.Is(err, bodylimit.ErrSlow) || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %v, want ErrSlow after 30s", err, time.Since(began))
		}
		if _, again := p.Read(make([]byte, 1)); again != err {
			t.Errorf("then %v", again)
		}
	})
}

func TestABodyThatNobodyReadsIsNotLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := &trickleBody{piece: 10, left: 100}
		p := &bodylimit.PacedReader{ReadCloser: sent, SetReadDeadline: sent.SetReadDeadline}
		var got bytes.Buffer
		for range 10 {
			time.Sleep(time.Minute) // the server's
			if _, err := io.CopyN(&got, p, 10); err != nil {
				t.Fatalf("after %d bytes: %v", got.Len(), err)
			}
		}
	})
}
