package kit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/http/problem"
)

// page is a body with a list in the middle.
type page struct {
	Status  string `json:"status"`
	Results []item `json:"results"`
	Cursor  string `json:"curseur,omitempty"`
}

type item struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

// newList returns a list of n items with texts of some bytes, read three at a time, and its body to be encoded at once.
func newList(n, bytes int, fail error) (l *kit.List[item], whole page) {
	whole = page{Status: `a "results":[] & <b>`, Results: []item{}, Cursor: "next"}
	for i := range n {
		whole.Results = append(whole.Results, item{i, strings.Repeat("é<&>", bytes/5)})
	}
	rest, shown := whole.Results, page{Status: whole.Status, Results: []item{}}
	return &kit.List[item]{Log: slog.New(slog.DiscardHandler), Member: "results", Body: func() any { return shown },
		Read: func(context.Context) ([]item, bool, error) {
			some := rest[:min(3, len(rest))]
			rest = rest[len(some):]
			if len(rest) == 0 {
				if fail != nil {
					return nil, false, fail
				}
				shown.Cursor = "next"
			}
			return some, len(some) == 3, nil // there may be no item after the last three
		}}, whole
}

func TestAListIsEncodedAsItsBodyWouldBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, bytes int
		isLong   bool
	}{{0, 0, false}, {1, 10, false}, {2, 10, false}, {3, 10, false}, {7, 5000, false}, {3, 30_000, true}, {9, 30_000, true}, {100, 3_000, true}, {1000, 10, false}} {
		t.Run(fmt.Sprint(c.n, " of ", c.bytes), func(t *testing.T) {
			t.Parallel()
			l, whole := newList(c.n, c.bytes, nil)
			response, err := l.Respond(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			if err := response.Write(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			want, err := kit.MarshalJSON(whole)
			if err != nil || w.Body.String() != string(want)+"\n" {
				t.Errorf("got %.200s… of %d bytes, want %.200s… of %d", w.Body, w.Body.Len(), want, len(want)+1)
			}
			if hasLength := w.Header().Get("Content-Length") != ""; w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || hasLength == c.isLong {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
		})
	}
}

func TestAListThatCannotBeReadIsAnErrorOrBrokenOff(t *testing.T) {
	t.Parallel()
	fault := errors.New("the disk is gone")
	short, _ := newList(3, 10, fault)
	if _, err := short.Respond(t.Context()); !errors.Is(err, fault) {
		t.Errorf("before the answer: %v", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		long, _ := newList(30, 30_000, fault)
		response, err := long.Respond(r.Context())
		if err == nil {
			err = response.Write(r.Context(), w)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err == nil || len(text) < budget.SmallAnswer {
		t.Errorf("read %d bytes, %v; want a part and an error", len(text), err)
	}
}

// TestAnOverloadThatBreaksAListOffIsNotLogged: whoever sends enough requests brings it about.
func TestAnOverloadThatBreaksAListOffIsNotLogged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault    error
		isLogged bool
	}{{errors.New("the disk is gone"), true}, {fmt.Errorf("a turn: %w", budget.ErrOverloaded), false}} {
		var log strings.Builder
		l, _ := newList(30, 30_000, c.fault)
		l.Log = slog.New(slog.NewTextHandler(&log, nil))
		response, err := l.Respond(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Write(t.Context(), httptest.NewRecorder()); err != nil {
			t.Error(err)
		}
		if isLogged := strings.Contains(log.String(), "list broken off"); isLogged != c.isLogged {
			t.Errorf("%v: logged %q", c.fault, log.String())
		}
	}
}

func TestAListReadsNoMoreThanIsSent(t *testing.T) {
	t.Parallel()
	l, _ := newList(300, 30_000, nil)
	read, inner := 0, l.Read
	l.Read = func(ctx context.Context) ([]item, bool, error) { read++; return inner(ctx) }
	response, err := l.Respond(t.Context())
	if err != nil || read != 1 {
		t.Fatalf("%d chunks were read before the answer began, %v", read, err)
	}
	gone := &failingWriter{ResponseRecorder: httptest.NewRecorder(), after: 2}
	if err := response.Write(t.Context(), gone); err != nil || read != 3 {
		t.Errorf("%d chunks were read for a client that took two, %v", read, err)
	}
}

// failingWriter is an answer whose client goes away after some writes.
type failingWriter struct {
	*httptest.ResponseRecorder
	after int
}

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// newBudgetWithRoom is a budget of 1 MiB, of which others have taken all but room.
func newBudgetWithRoom(room int64) *budget.Budget {
	const total = 1 << 20
	b := budget.New(total, total)
	b.ClaimShare("another", total-room)
	return b
}

func TestAnAnswerHoldsItsTextUntilItIsSent(t *testing.T) {
	t.Parallel()
	const text = 100_000
	for _, c := range []struct {
		what   string
		room   int64
		body   string
		late   bool
		isDone bool
		held   int64
		err    error
	}{
		{"a small one", 1 << 20, "x", false, false, 0, nil},
		{"a large one", 1 << 20, strings.Repeat("x", text-3), false, false, text, nil},
		{"a large one without room", text - 1, strings.Repeat("x", text-3), false, false, 0, budget.ErrOverloaded},
		{"of what is done, without room", text - 1, strings.Repeat("x", text-3), false, true, text, nil},
		{"one that is made when it is sent", 1 << 20, "late", true, false, 0, nil},
	} {
		b := newBudgetWithRoom(c.room)
		taken := b.Status().Used
		reservation := budget.NewAnswer(t.Context(), b)
		response := kit.Response{Status: 201, Body: c.body}
		if c.late {
			response.Body, response.LateBody = nil, func() any { return c.body }
		}
		v, err := response.Fit(reservation, c.isDone)
		if !errors.Is(err, c.err) || b.Status().Used-taken != c.held {
			t.Errorf("%s: holds %d, %v", c.what, b.Status().Used-taken, err)
		}
		if err != nil {
			continue
		}
		w := httptest.NewRecorder()
		if err := v.Write(t.Context(), w); err != nil || w.Code != 201 || w.Body.String() != fmt.Sprintf("%q\n", c.body) {
			t.Errorf("%s: sent %d, %v", c.what, w.Code, err)
		}
	}
}

func TestManyBrokenRulesHoldWhatTheyEcho(t *testing.T) {
	t.Parallel()
	few, many := problem.Violations(make([]problem.Violation, 10)...), problem.Violations(make([]problem.Violation, 100)...)
	for _, c := range []struct {
		what string
		room int64
		err  error
		held int64
		want error
	}{
		{"few", 0, few, 0, nil},
		{"many", 1 << 20, many, 100 * 4 << 10, nil},
		{"many, without room", 100 << 10, many, 0, budget.ErrOverloaded},
		{"another error", 0, io.ErrUnexpectedEOF, 0, io.ErrUnexpectedEOF},
	} {
		b := newBudgetWithRoom(c.room)
		taken := b.Status().Used
		err := kit.FitError(budget.NewAnswer(t.Context(), b), c.err)
		if used := b.Status().Used - taken; used != c.held || c.want != nil && !errors.Is(err, c.want) || c.want == nil && problem.StatusOf(err) != 422 {
			t.Errorf("%s: holds %d, answers %v", c.what, used, err)
		}
	}
}
