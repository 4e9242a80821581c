package api_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"lieudit/schemas/token"
)

// FuzzRequest: whatever is sent, nothing panics, nothing is redirected, what has a body is JSON, and a publishable key
// is accepted by the search alone.
func FuzzRequest(f *testing.F) {
	b := newRoutingAPI(f, &fakeRouter{}, unchanged)
	secret, publishable := b.keys["BUSINESS secret"], b.keys["STARTER publishable"]
	for _, seed := range []string{
		"GET /services/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\n\r\n",
		"GET /services/v1/locations/search?q=x&limit=3&lat=1&lon=2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\n\r\n",
		"GET /services/v1/locations/search HTTP/1.1\r\nHost: x\r\nOrigin: https://a.fr\r\nAuthorization: Bearer PUBLISHABLE\r\n\r\n",
		"GET //services/v1%2Fme/../x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer PUBLISHABLE\r\n\r\n",
		"POST /services/v1/route/compute HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nAuthorization: bearer SECRET\r\n\r\n{}",
		"POST /services/v1/locations/referentiels/a/sites:sync HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 36\r\nAuthorization: Bearer SECRET\r\n\r\n{\"sites\":[{\"external_id\":\"a\",\"x\":1}]}",
		"PATCH /services/v1/locations/referentiels/a/sites/%C3%A9 HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\nAuthorization: Bearer SECRET\r\n\r\n{\"nom\":null}",
		"GET /services/v1/locations/referentiels/a/sites:export?format=csv HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\n\r\n",
		"GET /services/v1/locations/search?bbox=1,2,3,4&curseur=x HTTP/1.1\r\nHost: x\r\nOrigin: https://a.fr\r\nAuthorization: Bearer PUBLISHABLE\r\n\r\n",
		"GET /services/v1/route/compute?origin=3,44&destination=12+avenue+foch,+mende&waypoints=site:shops/a&steps=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\n\r\n",
		"POST /services/v1/route/matrix HTTP/1.1\r\nHost: x\r\nContent-Length: 62\r\nAuthorization: Bearer SECRET\r\n\r\n{\"origins\":[{\"lon\":3,\"lat\":44},\"-3,44\"],\"sites\":{\"tags\":[\"a\"]}}",
		"GET /services/v1/route/isochrone?origin=3,44&cost_values=60&cost_values=7&sites=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://y/services/v1/version HTTP/1.0\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "SECRET", secret), "PUBLISHABLE", publishable)
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		if !slices.Contains([]int{200, 204, 400, 401, 403, 404, 405, 413, 422, 500}, w.Code) || w.Header().Get("Location") != "" {
			t.Errorf("%q: %d %v", text, w.Code, w.Header())
		}
		if b.logs.Len() > 0 {
			t.Errorf("%q: logged %s", text, b.logs)
		}
		if body := w.Body.Bytes(); w.Code != 204 && !json.Valid(body) {
			t.Errorf("%q: %d %s is no JSON", text, w.Code, body)
		}
		if kind, ok := token.DefaultPrefixes.KindOf(strings.TrimSpace(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))); ok &&
			kind == token.Publishable && w.Code == 200 && r.URL.Path != searchURL && r.URL.Path != "/services/v1/version" {
			t.Errorf("%q: a publishable key gets in", text)
		}
	})
}
