package routeserver

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// clock is elapsed time that a test moves on.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func accept(int, []byte) error { return nil }

func TestAServerThatFailsIsLeftAloneForAMoment(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	var isBroken atomic.Bool
	isBroken.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		if isBroken.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	var c clock
	s := New(server.URL, c.now)
	ask := func() error { return s.Ask(t.Context(), Call{Path: "/", Timeout: time.Minute}, accept) }
	for range 3 * maxFailures {
		if err := ask(); !errors.Is(err, route.ErrUnavailable) {
			t.Fatalf("got %v, want %v", err, route.ErrUnavailable)
		}
	}
	if got := requests.Load(); got != maxFailures {
		t.Errorf("%d requests reached the server, want %d", got, maxFailures)
	}
	c.seconds.Add(2) // one more is let through
	for range 3 {
		ask()
	}
	if got := requests.Load(); got != maxFailures+1 {
		t.Errorf("after a pause %d requests reached the server, want %d", got, maxFailures+1)
	}
	isBroken.Store(false)
	c.seconds.Add(2)
	for range 3 {
		if err := ask(); err != nil {
			t.Errorf("the server is back: %v", err)
		}
	}
}

func TestARefusalIsNoFailureOfTheServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	s := New(server.URL, time.Now)
	for range 3 * maxFailures {
		err := s.Ask(t.Context(), Call{Path: "/", Timeout: time.Minute}, func(int, []byte) error { return route.ErrNoRoute })
		if !errors.Is(err, route.ErrNoRoute) {
			t.Fatalf("got %v, want %v", err, route.ErrNoRoute)
		}
	}
}

func TestAnAnswerIsReadUpToALimit(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.CopyN(w, zeros{}, MaxAnswer+1) // the client may be gone
	}))
	defer server.Close()
	err := New(server.URL, time.Now).Ask(deadlinetest.Context(t, time.Minute), Call{Path: "/", Timeout: time.Minute}, accept)
	if !errors.Is(err, route.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, route.ErrUnavailable)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestTheServersTimeIsNotTheQuestions(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer server.Close()
	defer close(ended)
	s := New(server.URL, time.Now)
	if err := s.Ask(t.Context(), Call{Path: "/", Timeout: time.Millisecond}, accept); !errors.Is(err, route.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, route.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := s.Ask(ctx, Call{Path: "/", Timeout: time.Minute}, accept)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, route.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestAnErrorHidesWhereTheServerIs(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://user:secret@127.0.0.1:1", "http://[secret", "http://secret.invalid:99999"} {
		err := New(address, time.Now).Ask(t.Context(), Call{Path: "/route/2.5,46.5", Timeout: time.Minute}, accept)
		if !errors.Is(err, route.ErrUnavailable) || strings.Contains(err.Error(), "user:secret") || strings.Contains(err.Error(), "46.5") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

func TestPolylinesHaveSixDigits(t *testing.T) {
	t.Parallel()
	points, err := DecodePolyline("_izlhA~rlgdF_{geC~ywl@_kwzCn`{nI") // (38.5, -120.2), (40.7, -120.95), (43.252, -126.453)
	want := []geo.Point{{Lon: -120.2, Lat: 38.5}, {Lon: -120.95, Lat: 40.7}, {Lon: -126.453, Lat: 43.252}}
	if err != nil || len(points) != len(want) {
		t.Fatalf("got %v, %v", points, err)
	}
	for i, p := range points {
		if math.Abs(p.Lon-want[i].Lon) > 1e-9 || math.Abs(p.Lat-want[i].Lat) > 1e-9 {
			t.Errorf("position %d is %v, want %v", i, p, want[i])
		}
	}
	for _, broken := range []string{"_izlhA", "_", "\x00\x00", "~~~~~~~~~~~~~~~~", "_izlhA~rlgdF_"} {
		if points, err := DecodePolyline(broken); !errors.Is(err, route.ErrUnavailable) {
			t.Errorf("%q: got %v, %v", broken, points, err)
		}
	}
}

// FuzzDecodePolyline decodes anything: positions are on Earth.
func FuzzDecodePolyline(f *testing.F) {
	f.Add("_izlhA~rlgdF_{geC~ywl@_kwzCn`{nI")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		points, err := DecodePolyline(s)
		for _, p := range points {
			if err := CheckPoint(p); err != nil {
				t.Fatal(p, err)
			}
		}
		if err != nil && !errors.Is(err, route.ErrUnavailable) {
			t.Fatal(err)
		}
	})
}

func TestCostsAreNumbersFromZeroOn(t *testing.T) {
	t.Parallel()
	if err := CheckCosts(0, 1.5, 1e12); err != nil {
		t.Error(err)
	}
	for _, bad := range []float64{-0.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := CheckCosts(1, bad); !errors.Is(err, route.ErrUnavailable) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}

func TestBlocksCoverAMatrixOnce(t *testing.T) {
	t.Parallel()
	seen := map[[2]int]int{}
	var count func(b Block)
	count = func(b Block) {
		if b.Cells() > 4 {
			first, second := b.Halves()
			count(first)
			count(second)
			return
		}
		for _, r := range b.Rows {
			for _, c := range b.Columns {
				seen[[2]int{r, c}]++
			}
		}
	}
	for _, b := range Blocks(Indexes(7), Indexes(33), 3, 10) {
		if len(b.Rows) > 3 || len(b.Columns) > 10 {
			t.Errorf("%d × %d", len(b.Rows), len(b.Columns))
		}
		count(b)
	}
	for cell, n := range seen {
		if n != 1 {
			t.Errorf("cell %v comes %d times", cell, n)
		}
	}
	if len(seen) != 7*33 {
		t.Errorf("%d cells, want %d", len(seen), 7*33)
	}
}
