package ban

import (
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

func TestHostileFilesCostNoMemoryAndHideNoRow(t *testing.T) { // not parallel: they are weighed
	const times = 2000
	for name, c := range map[string]struct {
		text func(w io.Writer)
		rows int
		bad  Fault // where there is any
		bads int
	}{
		"header alone": {func(w io.Writer) { io.WriteString(w, header) }, 0, 0, 0},
		"bytes of zero": {func(w io.Writer) {
			io.WriteString(w, header+strings.Replace(one, "Soubeyran", "Soub\x00eyran", 1)+one)
		}, 1, BadEncoding, 1},
		"a line of 10 MB": {func(w io.Writer) {
			io.WriteString(w, header+one)
			io.WriteString(w, strings.Repeat("x", 10<<20)+"\n"+one)
		}, 2, BadQuoting, 1},
		"latin-1 throughout": {func(w io.Writer) {
			io.WriteString(w, header+strings.Repeat(strings.Replace(one, "é", "\xe9", 1), times))
		}, 0, BadEncoding, times},
		"all in the sea": {func(w io.Writer) {
			io.WriteString(w, header+strings.Repeat(strings.Replace(one, ";3.5;44.52;", ";-12.1;45.0;", 1), times))
		}, 0, BadPosition, times},
		"quotes alone":      {func(w io.Writer) { io.WriteString(w, header+strings.Repeat("\"\n", times)+one) }, 1, TooFewColumns, -1},
		"a bomb of a line":  {func(w io.Writer) { io.WriteString(w, header+one); fill(w, "x", 32<<20) }, 1, BadQuoting, 1},
		"a bomb of nothing": {func(w io.Writer) { io.WriteString(w, header+one); fill(w, "\n", 4<<20) }, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rows, report, err := all(t, pressed(t, c.text))
			if err != nil || len(rows) != c.rows {
				t.Errorf("%d rows and %v, want %d rows", len(rows), err, c.rows)
			}
			if c.bads >= 0 && (report.Bad() != c.bads || report.Counts[c.bad] != c.bads) {
				t.Errorf("bad rows: %v, want %d: %s", report.Counts, c.bads, c.bad)
			}
		})
	}
}

// fill writes the same sign again and again.
func fill(w io.Writer, sign string, n int) {
	block := strings.Repeat(sign, 1<<16)
	for ; n > 0; n -= len(block) {
		io.WriteString(w, block)
	}
}

// pressed is gzip of what write writes, made as it is read, and fails the test if reading it holds much memory.
func pressed(t *testing.T, write func(io.Writer)) io.Reader {
	t.Helper()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		packed := gzip.NewWriter(w)
		write(packed)
		w.CloseWithError(packed.Close())
	}()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	t.Cleanup(func() {
		r.CloseWithError(io.ErrClosedPipe)
		<-done
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		if held := int64(after.HeapSys) - int64(before.HeapSys); held > 64<<20 {
			t.Errorf("%d MB more are held", held>>20)
		}
	})
	return r
}

func TestGzipWithinGzipIsNoBase(t *testing.T) {
	t.Parallel()
	var format *FormatError
	if _, _, err := all(t, strings.NewReader(packed(packed(header+one)))); !errors.As(err, &format) {
		t.Errorf("got %v, want a *FormatError", err)
	}
}
