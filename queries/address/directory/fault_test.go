package directory_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/meiliclient"
	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/directory"
)

func TestAServerThatIsAwayIsAnErrorInTime(t *testing.T) {
	t.Parallel()
	v := vintageOf(t, addresstest.Hamlet())
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes calls and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, addr := range map[string]net.Addr{"silent": silent.Addr(), "gone": gone.Addr()} {
		d := instance(meiliclient.Server{URL: "http://" + addr.String(), Index: "test"}, "one", noon())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := d.Of(v).Find(ctx, []address.Ask{{Words: []string{"rue"}, Limit: 5}})
		if err == nil || name == "silent" && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: find answers %v", name, err)
		}
		for what, err := range map[string]error{"ready": d.Ready(ctx, v), "fill": d.Fill(ctx, v, nil), "prune": d.Prune(ctx)} {
			if err == nil || errors.Is(err, directory.ErrIncomplete) {
				t.Errorf("%s: %s answers %v", name, what, err)
			}
		}
	}
}

// spoilt answers everything with the same.
type spoilt struct {
	status int
	answer string
}

func (s spoilt) RoundTrip(r *http.Request) (*http.Response, error) { return s.to(r), nil }

func (s spoilt) to(r *http.Request) *http.Response {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(s.answer))}
}

func TestAnswersThatCannotBeMeantAreErrors(t *testing.T) {
	t.Parallel()
	v := vintageOf(t, addresstest.Hamlet())
	for name, s := range map[string]spoilt{
		"no JSON":                {http.StatusOK, "<html>"},
		"cut short":              {http.StatusOK, `{"results":[{"hits":[{"id":"s`},
		"too few answers":        {http.StatusOK, `{"results":[]}`},
		"too many answers":       {http.StatusOK, `{"results":[{"hits":[]},{"hits":[]}]}`},
		"a hit without an id":    {http.StatusOK, `{"results":[{"hits":[{}]}]}`},
		"an id that is none":     {http.StatusOK, `{"results":[{"hits":[{"id":"x"}]}]}`},
		"an id that is a number": {http.StatusOK, `{"results":[{"hits":[{"id":1}]}]}`},
		"a commune for a street": {http.StatusOK, `{"results":[{"hits":[{"id":"c0"}]}]}`},
		"one of another vintage": {http.StatusOK, `{"results":[{"hits":[{"id":"s1000000"}]}]}`},
		"an ordinal too long":    {http.StatusOK, `{"results":[{"hits":[{"id":"s99999999999999999999"}]}]}`},
		"no such index":          {http.StatusNotFound, `{"message":"Index not found.","code":"index_not_found","type":"invalid_request","link":""}`},
		"a wrong key":            {http.StatusForbidden, `{"message":"The provided API key is invalid.","code":"invalid_api_key","type":"auth","link":""}`},
		"an internal error":      {http.StatusInternalServerError, `oh`},
	} {
		d := instance(meiliclient.Server{URL: "http://spoilt", Index: "test", Transport: s}, "one", noon())
		_, err := d.Of(v).Find(t.Context(), []address.Ask{{Words: []string{"rue"}, Limit: 5}})
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if len(err.Error()) > 200 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is no line: %q", name, err)
		}
	}
}

// heard keeps what is sent, and answers that nothing was found.
type heard struct{ body string }

func (h *heard) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	h.body = string(b)
	return spoilt{http.StatusOK, `{"results":[{"hits":[]}]}`}.to(r), err
}

func TestWhatIsTypedStaysOutOfTheSyntaxOfFilters(t *testing.T) {
	t.Parallel()
	v, h := vintageOf(t, addresstest.Hamlet()), &heard{}
	d := instance(meiliclient.Server{URL: "http://heard", Index: "test", Transport: h}, "one", noon())
	_, err := d.Of(v).Find(t.Context(), []address.Ask{{
		Words: []string{"rue"}, Limit: 5, Postcodes: []string{"48000", "1] OR type = municipality", `"`}, Departments: []string{"2A", "", "48 OR 1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"codes_postaux IN [48000]"`, `"departement IN [2A]"`} {
		if !strings.Contains(h.body, want) || strings.Contains(h.body, "OR") {
			t.Errorf("%s is asked, want %s", h.body, want)
		}
	}
}
