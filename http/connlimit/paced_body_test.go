package connlimit_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/connlimit"
)

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
			p := &connlimit.PacedReader{ReadCloser: &c.sent, SetReadDeadline: c.sent.SetReadDeadline}
			_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, p, make([]byte, 8*mib))
			if errors.Is(err, connlimit.ErrSlow) != c.slow || time.Since(began) != c.ended {
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
		p := &connlimit.PacedReader{ReadCloser: sent, SetReadDeadline: sent.SetReadDeadline}
		if _, err := p.Read(make([]byte, 4<<20)); err != nil {
			t.Fatal(err)
		}
		sent.pause = time.Hour
		began := time.Now()
		_, err := p.Read(make([]byte, 1))
		if !errors.Is(err, connlimit.ErrSlow) || time.Since(began) != 30*time.Second {
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
		p := &connlimit.PacedReader{ReadCloser: sent, SetReadDeadline: sent.SetReadDeadline}
		var got bytes.Buffer
		for range 10 {
			time.Sleep(time.Minute) // the server's
			if _, err := io.CopyN(&got, p, 10); err != nil {
				t.Fatalf("after %d bytes: %v", got.Len(), err)
			}
		}
	})
}
