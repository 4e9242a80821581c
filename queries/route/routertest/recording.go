package routertest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lieudit/queries/route/routerprocess"
)

var recordFlag = flag.Bool("record", false, "write what a real routing server answers to testdata")

// recordingPath is the file with what a real server answered to the questions of an adapter's tests.
var recordingPath = filepath.Join("testdata", "exchanges.jsonl.gz")

// Exchange is a request and its answer, one line of a recording.
type Exchange struct {
	Path   string          `json:"path"` // with the query
	Body   string          `json:"body,omitempty"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// Recording is what a real server answered.
type Recording []Exchange

// ReadRecording reads the recording of the package that is tested.
func ReadRecording(t testing.TB) (r Recording) {
	t.Helper()
	packed, err := os.ReadFile(recordingPath)
	if err != nil {
		t.Fatalf("%v: run the tests of this package with -record and %s", err, routerprocess.FolderVariable)
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(plain); d.More(); {
		var e Exchange
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		r = append(r, e)
	}
	return r
}

// find returns the answer to a request.
func (r Recording) find(path, body string) (Exchange, bool) {
	for _, e := range r {
		if e.Path == path && e.Body == body {
			return e, true
		}
	}
	return Exchange{}, false
}

// Record calls ask with the URL of a proxy in front of a real server, and records the traffic, each request once. It writes only
// with -record; otherwise the test fails if the requests, or the statuses of the answers, differ from the recording.
func Record(t testing.TB, serverURL string, ask func(proxyURL string)) {
	t.Helper()
	var mu sync.Mutex
	var passed Recording
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := forward(serverURL, r)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
			return
		}
		if _, ok := passed.find(e.Path, e.Body); !ok {
			passed = append(passed, e)
		}
		w.WriteHeader(e.Status)
		w.Write(e.Answer) // its error is the client's
	}))
	defer proxy.Close()
	ask(proxy.URL)
	if *recordFlag {
		passed.write(t)
		return
	}
	recorded := ReadRecording(t)
	for _, e := range passed {
		if old, ok := recorded.find(e.Path, e.Body); !ok || old.Status != e.Status {
			t.Errorf("%s %s is not in the recording, or its status is another: record again with -record", e.Path, e.Body)
		}
	}
}

// forward passes a request on to a server.
func forward(serverURL string, r *http.Request) (e Exchange, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return e, err
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, serverURL+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return e, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return e, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return Exchange{r.URL.RequestURI(), string(body), response.StatusCode, answer}, err
}

func (r Recording) write(t testing.TB) {
	t.Helper()
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	lines := json.NewEncoder(packed)
	lines.SetEscapeHTML(false)
	for _, e := range r {
		if err := lines.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(recordingPath), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordingPath, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
