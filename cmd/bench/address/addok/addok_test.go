package addok

import (
	"encoding/json"
	"lieudit/schemas/geo"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestAPeerIsAskedInItsOwnInterface(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery)
		switch r.FormValue("q") {
		case "fail":
			w.WriteHeader(http.StatusTeapot)
		case "a":
			w.WriteHeader(http.StatusBadRequest)
		}
		properties := map[string]any{"id": "48095_0010_00012_bis", "label": "12bis Rue X", "type": "housenumber", "housenumber": "12bis", "score": 0.9}
		json.NewEncoder(w).Encode(map[string]any{"type": "FeatureCollection", "features": []any{map[string]any{"properties": properties}}})
	}))
	defer server.Close()
	peer := New(server.URL + "/")
	for _, q := range []Query{
		{Text: "12bis ru é", Limit: 5, IsCompleted: true},
		{Text: "12bis ru é", Limit: 1, Bias: &geo.Point{Lon: 3.5, Lat: 44.25}},
	} {
		got, err := peer.Search(t.Context(), q)
		if want := []Answer{{"48095_0010_00012_bis", "12bis Rue X", "housenumber", "12bis", 0.9}}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	want := []string{"/search/?autocomplete=1&limit=5&q=12bis+ru+%C3%A9", "/search/?autocomplete=0&lat=44.250000&limit=1&lon=3.500000&q=12bis+ru+%C3%A9"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if _, err := peer.Search(t.Context(), Query{Text: "fail"}); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("a failure: %v", err)
	}
	if got, err := peer.Search(t.Context(), Query{Text: "a"}); err != nil || got != nil {
		t.Errorf("a text that is refused: %v, %v", got, err)
	}
}
