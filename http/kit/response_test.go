package kit_test

import (
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/http/kit"
	"lieudit/http/sitefile"
	"lieudit/schemas/locations"
)

// someSites are n sites, then an error if there is one.
func someSites(n int, err error) iter.Seq2[locations.Site, error] {
	return func(yield func(locations.Site, error) bool) {
		for range n {
			if !yield(locations.Site{ExternalID: strings.Repeat("x", 1000)}, nil) {
				return
			}
		}
		if err != nil {
			yield(locations.Site{}, err)
		}
	}
}

func TestAnExportThatFailsIsNeverTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	for _, format := range []sitefile.Format{sitefile.NDJSON, sitefile.GeoJSON} {
		for fails, want := range map[error]bool{nil: true, errors.New("database is gone"): false} {
			var log strings.Builder
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				f, err := kit.NewExport(format, someSites(50, fails))
				if err != nil {
					t.Error(err)
					return
				}
				f.Stream(r.Context(), w, slog.New(slog.NewTextHandler(&log, nil)))
			}))
			resp, err := http.Get(server.URL)
			whole := err == nil
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				whole = err == nil
				resp.Body.Close()
			}
			server.Close()
			if whole != want || strings.Contains(log.String(), "broken off") == want {
				t.Errorf("%s with %v: whole is %v, logged %q", format.MediaType, fails, whole, log.String())
			}
		}
	}
}

func TestAnExportThatCannotBeginIsAnError(t *testing.T) {
	t.Parallel()
	if f, err := kit.NewExport(sitefile.NDJSON, someSites(0, errors.New("x"))); err == nil {
		f.Stop()
		t.Error("it begins")
	}
}
