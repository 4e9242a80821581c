package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
)

// request is one HTTP request of a test.
type request struct {
	target  string // method and path of the API, or method and URL of another listener
	key     string // API key or customer-area token; "": none
	body    io.Reader
	length  int64    // length that the request announces, -1 for none; 0: that of body
	headers []string // "Name: value"
}

// do sends a request and reads the answer whole. An error means that no whole answer came.
func (svc *testService) do(ctx context.Context, r request) (status int, body string, err error) {
	method, url, _ := strings.Cut(r.target, " ")
	if strings.HasPrefix(url, "/") {
		url = svc.api + url
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r.body)
	if err != nil {
		return 0, "", err
	}
	if r.length != 0 {
		req.ContentLength = r.length
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	for _, line := range r.headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := svc.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// send sends a request with a body and headers. It may be called by any goroutine of a test; without an answer the test
// fails and the status is 0.
func (svc *testService) send(t *testing.T, key, target, body string, headers ...string) (status int, answer string) {
	t.Helper()
	status, answer, err := svc.do(t.Context(), request{target: target, key: key, body: strings.NewReader(body), headers: headers})
	if err != nil {
		t.Errorf("%s: %v", target, err)
		return 0, ""
	}
	return status, answer
}

// statusOf sends a request and returns the status of the answer.
func (svc *testService) statusOf(t *testing.T, key, target, body string) int {
	t.Helper()
	status, _ := svc.send(t, key, target, body)
	return status
}

// mustSend sends a request that must succeed and returns the body of the answer.
func (svc *testService) mustSend(t *testing.T, key, target, body string) string {
	t.Helper()
	status, answer := svc.send(t, key, target, body)
	if status/100 != 2 {
		t.Fatalf("%s: %d %s", target, status, answer)
	}
	return answer
}

// upload sends a body of any length, and announces that length unless it is -1.
func (svc *testService) upload(t *testing.T, key, path string, body io.Reader, length int64) (status int, answer string) {
	t.Helper()
	status, answer, err := svc.do(t.Context(), request{target: "POST " + path, key: key, body: body, length: length})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return status, answer
}

// sendToArea sends a request to the customer area. It sends it again while the instance has no time to check keys.
func (svc *testService) sendToArea(t *testing.T, token, target, body string) (status int, answer string) {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	for tries := 0; ; tries++ {
		status, answer = svc.send(t, token, method+" "+svc.area+path, body)
		if !isKeyRingUnavailable([]byte(answer)) || tries == 100 {
			return status, answer
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// getJSON reads a path of the API into a value, when the status is 200, and returns the status.
func (svc *testService) getJSON(t *testing.T, key, path string, into any) int {
	t.Helper()
	status, answer := svc.send(t, key, "GET "+path, "")
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(answer), into); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	return status
}

// statusOfMe is the status of GET /me with a key.
func (svc *testService) statusOfMe(t *testing.T, key string) int {
	t.Helper()
	return svc.statusOf(t, key, "GET /me", "")
}

// areKeysChecked reports whether the instance checks keys: then an unknown path is a 404, which is not counted.
func (svc *testService) areKeysChecked(t *testing.T, key string) bool {
	t.Helper()
	return svc.statusOf(t, key, "GET /nowhere", "") == http.StatusNotFound
}

// readiness is an answer of /readyz.
type readiness struct {
	status int
	parts  map[string]string // what each component reports
	text   string            // the whole body
}

// readiness requests /readyz.
func (svc *testService) readiness(t *testing.T) (r readiness) {
	t.Helper()
	r.status, r.text = svc.send(t, "", "GET "+svc.ops+"/readyz", "")
	var report struct{ Parts map[string]string }
	if err := json.Unmarshal([]byte(r.text), &report); err != nil {
		t.Errorf("readiness: %v", err)
	}
	r.parts = report.Parts
	return r
}

// isReady reports whether the instance is ready.
func (svc *testService) isReady(t *testing.T) bool {
	t.Helper()
	return svc.readiness(t).status == http.StatusOK
}

// readyComponent is what a component reports that an instance can do without: the instance must be ready.
func (svc *testService) readyComponent(t *testing.T, name string) string {
	t.Helper()
	r := svc.readiness(t)
	if r.status != http.StatusOK {
		t.Fatalf("readiness: %d %s", r.status, r.text)
	}
	return r.parts[name]
}

// metricValue is the value of a metric, named with its labels.
func (svc *testService) metricValue(t *testing.T, name string) string {
	t.Helper()
	_, all := svc.send(t, "", "GET "+svc.ops+"/metrics", "")
	_, value, _ := strings.Cut(all, "\n"+name+" ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// waitUntil fails the test when a condition does not become true in time. It logs how long that took.
func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	startedAt := time.Now()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, what, condition)
	t.Logf("%s: %v", what, time.Since(startedAt).Round(time.Millisecond))
}
