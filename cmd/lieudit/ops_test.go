package main

import (
	"net/http"
	"os"
	"testing"

	"lieudit/cmd/lieudit/service"
)

// With DNS rebinding a web page would read these: the Host header has the name of the page.
func TestHealthMetricsAndProfilesAreNotServedByTheNameOfAnotherServer(t *testing.T) {
	t.Parallel()
	svc, err := tryStartService(t, func(c *service.Config) { c.OpsHosts = []string{"lieudit-a:8082"} })
	if err != nil {
		t.Fatal(err)
	}
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/metrics", "/debug/pprof/", "/debug/pprof/heap", "/nowhere"} {
		for host, isServed := range map[string]bool{
			"": true, "localhost:9": true, "lieudit-a": true, machine + ":8082": true, "192.0.2.7": true, "evil.example": false, "lieudit-a.evil.example": false,
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, svc.ops+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host // "" is the address in the URL
			response, err := svc.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got := response.StatusCode != http.StatusMisdirectedRequest; got != isServed {
				t.Errorf("%s for %q: got %s, want that it is served: %t", path, host, response.Status, isServed)
			}
		}
	}
}
