package budget_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/http/budget"
)

const limit = 4 * budget.SmallBody

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
		{"small", budget.SmallBody, budget.SmallBody, 0},
		{"large", budget.SmallBody + 1, budget.SmallBody + 1, budget.SmallBody + 1},
		{"at the limit", limit, limit, limit},
		{"small, of unknown length", budget.SmallBody, -1, 0},
		{"large, of unknown length", budget.SmallBody + 1, -1, limit},
	} {
		b := budget.New(1<<30, 1<<30)
		r, _ := request(c.bytes, c.declared)
		release := budget.LimitBody(b, r, budget.Admission{Account: "a", Limit: limit})
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
	release := budget.LimitBody(b, first, budget.Admission{Account: "a", Limit: limit, Cost: 1})
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
		{"refused, of unknown length", limit, -1, refusal, 0, &refusal, budget.SmallBody + 1},
		{"over the limit, by its own account", limit + 1, limit + 1, nil, 0, &tooLarge, 0},
		{"over the account's part", limit, limit, nil, 1, nil, 0},
	} {
		b := budget.New(limit, limit-c.held)
		r, sent := request(c.bytes, c.declared)
		asked := 0
		defer budget.LimitBody(b, r, budget.Admission{Account: "a", Limit: limit, Allow: func() error { asked++; return c.allow }})()
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
	defer budget.LimitBody(b, r, budget.Admission{Limit: limit})()
	got, err := io.ReadAll(r.Body)
	if tooLarge := new(http.MaxBytesError); !errors.As(err, &tooLarge) || len(got) != limit {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}
