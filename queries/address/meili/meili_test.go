package meili_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/meili"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/geo"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/meiliclient/meilitest"
)

// clock is a time that the test sets.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// noon is the time at which exchanges are recorded.
func noon() *clock { return &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

// newIndexes is the view of one of the instances that share a server.
func newIndexes(s meiliclient.Server, name string, c *clock) *meili.Indexes {
	d := meili.New(s.Client(), name, c.now, c.now)
	d.Name = s.Index
	return d
}

func newVintage(t testing.TB, rows []ban.Row) *vintage.Vintage {
	t.Helper()
	v, err := addresstest.BuildVintage(rows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// deleteAfter deletes the index of a vintage when the test ends.
func deleteAfter(t testing.TB, d *meili.Indexes, v *vintage.Vintage) {
	t.Cleanup(func() {
		if err := d.Delete(context.Background(), v); err != nil {
			t.Error(err)
		}
	})
}

func fill(t testing.TB, d *meili.Indexes, v *vintage.Vintage) {
	t.Helper()
	deleteAfter(t, d, v)
	if err := d.Fill(t.Context(), v, nil); err != nil {
		t.Fatal(err)
	}
}

// newEngines is an engine on the vintage's own index and one on Meilisearch, by name.
func newEngines(t *testing.T, rows []ban.Row) map[string]*address.Engine {
	t.Helper()
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	v := newVintage(t, rows)
	d := newIndexes(meilitest.Server(t), "one", noon())
	fill(t, d, v)
	return map[string]*address.Engine{"own": address.New(v, table), "meilisearch": address.NewOn(v, table, d.Index(v))}
}

func TestBothIndexesVerify(t *testing.T) {
	t.Parallel()
	for name, e := range newEngines(t, addresstest.Hamlet()) {
		for _, c := range []struct {
			what    string
			ask     address.Query
			id      string
			verdict address.Verdict
		}{
			{"clean", address.Query{Text: "12 bis rue des Lilas 48000 Mende"}, "48095_0010_00012_bis", address.Exact},
			{"abbreviated", address.Query{Text: "3ter av gal leclerc, BP 12, 48000 MENDE"}, "48095_0020_00003_ter", address.Exact},
			{"a letter wrong", address.Query{Text: "12 rue des lylas 48000 mende"}, "48095_0010_00012", address.Probable},
			{"a letter too much, in the commune", address.Query{Text: "7 route de mende chanacc"}, "48039_0050_00007", address.Probable},
			{"another postcode", address.Query{Text: "12 rue des lilas 48230 mende"}, "48095_0010_00012", address.Probable},
			{"no postcode", address.Query{Text: "7 route de mende chanac"}, "48039_0050_00007", address.Exact},
			{"no commune", address.Query{Text: "12 rue des lilas 48000"}, "48095_0010_00012", address.Exact},
			{"neither, in two communes", address.Query{Text: "3 rue de l'église"}, "48095_0040_00003", address.Probable},
			{"a number that is not there", address.Query{Text: "13 rue des lilas mende"}, "48095_0010", address.Probable},
			{"a word too few", address.Query{Text: "12 lilas 48000 mende"}, "48095_0010_00012", address.Probable},
			{"a number in the name", address.Query{Text: "8 rue du 8 mai 1945 mende"}, "48095_0030_00008", address.Exact},
			{"a locality", address.Query{Text: "Le Chapitre 48000 Mende"}, "48095_b001", address.Exact},
			{"a former commune", address.Query{Text: "2 place du foirail, le monastier"}, "48039_0060_00002", address.Exact},
			{"a city of arrondissements", address.Query{Text: "10 rue jenner paris"}, "75113_0010_00010", address.Exact},
			{"a commune", address.Query{Text: "Mende"}, "48095", address.Exact},
			{"the code of a commune", address.Query{Street: "rue des lilas", CityCode: "48039"}, "48039_0010", address.Exact},
			{"a filter by postcode", address.Query{Text: "rue des lilas", Filter: address.Filter{Postcodes: []string{"48230"}}}, "48039_0010", address.Exact},
			{"a filter by department", address.Query{Text: "rue des lilas", Filter: address.Filter{Departments: []string{"75"}}}, "", ""},
		} {
			c.ask.Limit = 5
			found, err := e.Verify(t.Context(), c.ask)
			if c.id == "" {
				if err != nil || len(found) > 0 {
					t.Errorf("%s, %s: %v, %v, want nothing", name, c.what, found, err)
				}
				continue
			}
			if err != nil || len(found) == 0 || found[0].ID != c.id || found[0].Verdict != c.verdict {
				t.Errorf("%s, %s: %+v, %v; want %s, %s", name, c.what, found, err, c.id, c.verdict)
			}
		}
	}
}

func TestBothIndexesComplete(t *testing.T) {
	t.Parallel()
	for name, e := range newEngines(t, addresstest.Hamlet()) {
		for line, id := range map[string]string{
			"12 rue des li": "48095_0010_00012", "5 rue des lilas 482": "48039_0010_00005", "2 place du foir": "48039_0060_00002", "chapi": "48095_b001", "chana": "48039",
		} {
			found, err := e.Complete(t.Context(), address.Query{Text: line, Limit: 5})
			if err != nil || len(found) == 0 || found[0].ID != id {
				t.Errorf("%s, %q: %+v, %v; want %s", name, line, found, err, id)
			}
		}
		near := address.Query{Text: "rue de l'eglise", Limit: 1, Bias: &geo.Point{Lon: 3.5003, Lat: 44.5}}
		if found, err := e.Complete(t.Context(), near); err != nil || len(found) != 1 {
			t.Errorf("%s, near a position: %+v, %v", name, found, err)
		}
		if _, err := e.Complete(t.Context(), address.Query{Text: "zzzyx", Limit: 5}); !errors.Is(err, address.ErrUnparsable) {
			t.Errorf("%s: %v, want %v", name, err, address.ErrUnparsable)
		}
	}
}

func TestAVintageIsListedOnceAndWhole(t *testing.T) {
	t.Parallel()
	v := newVintage(t, addresstest.Hamlet())
	s := meilitest.Server(t)
	one, other := newIndexes(s, "one", noon()), newIndexes(s, "other", noon())
	deleteAfter(t, one, v)
	if err := one.Ready(t.Context(), v); !errors.Is(err, meili.ErrIncomplete) {
		t.Errorf("before: %v, want %v", err, meili.ErrIncomplete)
	}
	total := 0
	if err := one.Fill(t.Context(), v, func(done, _ int) { total = done }); err != nil {
		t.Fatal(err)
	}
	if want := v.Communes + v.Streets + v.Localities; total != want {
		t.Errorf("%d documents were sent, want %d", total, want)
	}
	if err := other.Ready(t.Context(), v); err != nil {
		t.Errorf("after: %v", err)
	}
	if err := other.Fill(t.Context(), v, func(int, int) { t.Error("it is listed again") }); err != nil {
		t.Error(err)
	}
}

func TestIndexesGoWhenNobodyUsesThem(t *testing.T) {
	t.Parallel()
	old, next := newVintage(t, addresstest.Hamlet()), newVintage(t, addresstest.Hamlet()[1:])
	s, c := meilitest.Server(t), noon()
	one, other := newIndexes(s, "one", c), newIndexes(s, "other", c)
	for _, v := range []*vintage.Vintage{old, next} {
		fill(t, one, v)
	}
	if err := other.Fill(t.Context(), old, nil); err != nil { // which takes a lease
		t.Fatal(err)
	}
	listed := func(when string, v *vintage.Vintage, want error) {
		t.Helper()
		if err := errors.Join(one.Prune(t.Context()), ready(t, one, v, want)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	if err := one.Release(t.Context(), old.Digest()); err != nil {
		t.Fatal(err)
	}
	listed("while another instance uses it", old, nil)
	c.Time = c.Add(29 * time.Minute)
	if err := one.Fill(t.Context(), next, nil); err != nil { // which renews the lease
		t.Fatal(err)
	}
	listed("not long after", old, nil)
	c.Time = c.Add(2 * time.Minute)
	listed("long after", old, meili.ErrIncomplete)
	listed("one in use", next, nil)
}

func ready(t *testing.T, d *meili.Indexes, v *vintage.Vintage, want error) error {
	t.Helper()
	if err := d.Ready(t.Context(), v); !errors.Is(err, want) {
		return errors.Join(errors.New("it is not as it should be"), err, want)
	}
	return nil
}

func TestQuestionsAreCounted(t *testing.T) {
	t.Parallel()
	v := newVintage(t, addresstest.Hamlet())
	d := newIndexes(meilitest.Server(t), "one", noon())
	fill(t, d, v)
	asks := []address.CandidateQuery{{Words: []string{"rue", "lilas"}, Limit: 48}, {Words: []string{"mende"}, Communes: true, Limit: 16}}
	if _, err := d.Index(v).Find(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	if requests, searches := d.RequestCounts(); requests != 1 || searches != 2 {
		t.Errorf("%d requests, %d searches; want 1 and 2", requests, searches)
	}
}

func TestRecordingsSayWhichVersionMadeThem(t *testing.T) {
	t.Parallel()
	if v := meilitest.RecordedVersions(t); len(v) == 0 || v[""] > 0 {
		t.Errorf("versions: %v", v)
	}
}

func TestAnUnreachableServerIsAnErrorInTime(t *testing.T) {
	t.Parallel()
	v := newVintage(t, addresstest.Hamlet())
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
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
		d := newIndexes(meiliclient.Server{URL: "http://" + addr.String(), Index: "test"}, "one", noon())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := d.Index(v).Find(ctx, []address.CandidateQuery{{Words: []string{"rue"}, Limit: 5}})
		if err == nil || name == "silent" && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: find answers %v", name, err)
		}
		for what, err := range map[string]error{"ready": d.Ready(ctx, v), "fill": d.Fill(ctx, v, nil), "prune": d.Prune(ctx)} {
			if err == nil || errors.Is(err, meili.ErrIncomplete) {
				t.Errorf("%s: %s answers %v", name, what, err)
			}
		}
	}
}

// fixedResponse answers every request alike.
type fixedResponse struct {
	status int
	answer string
}

func (s fixedResponse) RoundTrip(r *http.Request) (*http.Response, error) { return s.respond(r), nil }

func (s fixedResponse) respond(r *http.Request) *http.Response {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(s.answer))}
}

func TestMalformedResponsesAreErrors(t *testing.T) {
	t.Parallel()
	v := newVintage(t, addresstest.Hamlet())
	for name, s := range map[string]fixedResponse{
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
		d := newIndexes(meiliclient.Server{URL: "http://spoilt", Index: "test", Transport: s}, "one", noon())
		_, err := d.Index(v).Find(t.Context(), []address.CandidateQuery{{Words: []string{"rue"}, Limit: 5}})
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if len(err.Error()) > 200 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is no line: %q", name, err)
		}
	}
}

// recorder keeps the last request and answers that nothing was found.
type recorder struct{ body string }

func (h *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	h.body = string(b)
	return fixedResponse{http.StatusOK, `{"results":[{"hits":[]}]}`}.respond(r), err
}

func TestTypedTextStaysOutOfTheFilterSyntax(t *testing.T) {
	t.Parallel()
	v, h := newVintage(t, addresstest.Hamlet()), &recorder{}
	d := newIndexes(meiliclient.Server{URL: "http://heard", Index: "test", Transport: h}, "one", noon())
	_, err := d.Index(v).Find(t.Context(), []address.CandidateQuery{{
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
