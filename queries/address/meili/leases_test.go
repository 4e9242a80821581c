package meili_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/meili"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/meiliclient"
)

// leaseServer answers like a Meilisearch that has the complete index of one vintage, and the leases on it. The times on the clocks
// of instances must not show in recorded exchanges, which have one clock.
type leaseServer struct {
	t      *testing.T
	index  string
	leases map[string]map[string]any // by id
	writes int                       // of leases
}

func (s *leaseServer) RoundTrip(r *http.Request) (*http.Response, error) {
	status, answer := http.StatusAccepted, any(map[string]any{"taskUid": 1})
	switch _, documents, isDocuments := strings.Cut(r.URL.Path, "/documents"); {
	case isDocuments && documents == "" && r.Method == http.MethodPost:
		s.writes++
		for _, l := range readBody[map[string]any](s.t, r) {
			s.leases[l["id"].(string)] = l
		}
	case documents == "/delete-batch":
		for _, id := range readBody[string](s.t, r) {
			delete(s.leases, id)
		}
	case isDocuments:
		all := []map[string]any{}
		for _, l := range s.leases {
			all = append(all, l)
		}
		status, answer = http.StatusOK, map[string]any{"results": all}
	case r.URL.Path == "/tasks/1":
		status, answer = http.StatusOK, map[string]any{"uid": 1, "status": "succeeded"}
	case r.URL.Path == "/indexes":
		status, answer = http.StatusOK, map[string]any{"results": []any{map[string]any{"uid": s.index}}}
	case r.Method == http.MethodDelete:
		s.index = ""
	case s.index == "":
		status, answer = http.StatusNotFound, map[string]any{"code": "index_not_found"}
	default: // the index is looked for
		status, answer = http.StatusOK, map[string]any{"uid": s.index}
	}
	body, err := json.Marshal(answer)
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// readBody reads the list in a request.
func readBody[T any](t *testing.T, r *http.Request) (all []T) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
		t.Error(err)
	}
	return all
}

// newLeaseServer serves the index of a vintage to instances with a wall clock and a clock of elapsed time.
func newLeaseServer(t *testing.T, v *vintage.Vintage) (s *leaseServer, newInstance func(name string, elapsed, wall *clock) *meili.Indexes) {
	t.Helper()
	s = &leaseServer{t: t, index: "test-1-" + v.Digest(), leases: map[string]map[string]any{}}
	at := meiliclient.Server{URL: "http://leases", Index: "test", Transport: s, Timeout: time.Minute}
	return s, func(name string, elapsed, wall *clock) *meili.Indexes {
		d := meili.New(at.Client(), name, elapsed.now, wall.now)
		d.Name = at.Index
		return d
	}
}

func TestALeaseIsRenewedByElapsedTime(t *testing.T) {
	t.Parallel()
	v := newVintage(t, addresstest.Hamlet())
	s, newInstance := newLeaseServer(t, v)
	elapsed, wall := noon(), noon()
	d := newInstance("one", elapsed, wall)
	for _, step := range []struct {
		passes, set time.Duration
		wantWrites  int
	}{
		{0, 0, 1}, {9 * time.Minute, 0, 0}, {2 * time.Minute, -5 * time.Hour, 1}, {time.Minute, 5 * time.Hour, 0}, {10 * time.Minute, 0, 1},
	} {
		elapsed.Time, wall.Time = elapsed.Add(step.passes), wall.Add(step.passes+step.set)
		before := s.writes
		if err := d.Fill(t.Context(), v, nil); err != nil {
			t.Fatal(err)
		}
		if got := s.writes - before; got != step.wantWrites {
			t.Errorf("after %v more, the wall clock set by %v: written %d times, want %d", step.passes, step.set, got, step.wantWrites)
		}
	}
}

func TestALeaseEndsAlthoughTheWallClockWasSetBack(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]time.Duration{"not": 0, "by minutes": -20 * time.Minute, "by hours": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVintage(t, addresstest.Hamlet())
			_, newInstance := newLeaseServer(t, v)
			c := noon()
			dead, living := newInstance("dead", c, c), newInstance("living", c, c)
			if err := dead.Fill(t.Context(), v, nil); err != nil {
				t.Fatal(err)
			}
			prune := func(when string, passed time.Duration, want error) {
				c.Time = c.Add(passed)
				if err := living.Prune(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := ready(t, living, v, want); err != nil {
					t.Errorf("%s: %v", when, err)
				}
			}
			prune("at once", set, nil)
			prune("not long after", 29*time.Minute, nil)
			prune("long after", 32*time.Minute, meili.ErrIncomplete)
		})
	}
}
