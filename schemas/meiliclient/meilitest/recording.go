package meilitest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lieudit/schemas/meiliclient"
)

// recordingHeader is the first line of a recording.
type recordingHeader struct {
	// Version is that of the server that answered.
	Version string `json:"meilisearch"`
}

// exchange is a request and its answer, one line of a recording. Of a long request only the digest is kept.
type exchange struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Digest string          `json:"digest,omitempty"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"` // as canonicalJSON makes it
	Times  int             `json:"times,omitempty"`  // how often in a row, where more than once
}

// key identifies a request: two requests with the same key are the same.
func (e exchange) key() string { return e.Method + " " + e.Path + " " + string(e.Body) + e.Digest }

// recording is the requests of one test with their answers, in their order.
type recording struct {
	header    recordingHeader
	exchanges []exchange
}

const (
	// A request's body of more bytes is kept as its hash only: bulk imports would fill the repository.
	maxInlineBody = 1 << 10
	// A recording of as many bytes or more is compressed.
	maxPlainRecording = 64 << 10
)

// write writes the recording to a file in place of the one that is there. A large one is compressed, and its file's name
// then ends with .gz.
func (r recording) write(path string) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	err := lines.Encode(r.header)
	for _, e := range r.exchanges {
		err = errors.Join(err, lines.Encode(e))
	}
	if err != nil {
		return err
	}
	for _, old := range []string{path, path + ".gz"} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if b.Len() < maxPlainRecording {
		return os.WriteFile(path, b.Bytes(), 0o644)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, err = z.Write(b.Bytes())
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	return os.WriteFile(path+".gz", packed.Bytes(), 0o644)
}

// readRecording reads a recording from the file at path or, compressed, at path.gz. It is fs.ErrNotExist when there is
// neither.
func readRecording(path string) (r recording, err error) {
	var in io.Reader
	b, err := os.ReadFile(path)
	if in = bytes.NewReader(b); errors.Is(err, fs.ErrNotExist) {
		if b, err = os.ReadFile(path + ".gz"); err == nil {
			in, err = gzip.NewReader(bytes.NewReader(b))
		}
	}
	if err != nil {
		return r, err
	}
	lines := json.NewDecoder(bufio.NewReader(in))
	if err := lines.Decode(&r.header); err != nil {
		return r, err
	}
	for {
		var e exchange
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return r, err
		}
		r.exchanges = append(r.exchanges, e)
	}
}

// canonicalJSON is a JSON text with its members in alphabetical order and without times, so that the same request is the
// same bytes each time. It is nil for a text that is no JSON.
func canonicalJSON(text []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(dropTimings(v)) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// dropTimings removes processingTimeMs, how long the server took, from a decoded JSON value at any depth. It changes v.
func dropTimings(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "processingTimeMs")
		for _, inner := range v {
			dropTimings(inner)
		}
	case []any:
		for _, inner := range v {
			dropTimings(inner)
		}
	}
	return v
}

// shortHash is the first half of the SHA-256 of b, in hexadecimal.
func shortHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// recorder is a transport that passes requests on to the server and records the answers. It is safe for concurrent use.
type recorder struct {
	next http.RoundTripper

	mu        sync.Mutex
	recording recording
	latest    map[string]int // by key, the latest exchange
}

func newRecorder(version string) *recorder {
	return &recorder{next: meiliclient.NewTransport(), recording: recording{header: recordingHeader{version}}, latest: map[string]int{}}
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	recorded, err := requestExchange(req)
	if err != nil {
		return nil, err
	}
	answer, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	recorded.Status, recorded.Answer = answer.StatusCode, canonicalJSON(text)
	r.recordExchange(recorded)
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}

// recordExchange adds an exchange, or counts it when it is the same as the latest with its key. Of requests about a task,
// which is how Meilisearch does its slow work, only those after its end are kept: how often a test asks before depends on
// the machine.
func (r *recorder) recordExchange(e exchange) {
	if isTaskPending(e) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, again := r.latest[e.key()]; again {
		if was := &r.recording.exchanges[n]; was.Status == e.Status && bytes.Equal(was.Answer, e.Answer) {
			was.Times = max(was.Times, 1) + 1
			return
		}
	}
	r.latest[e.key()] = len(r.recording.exchanges)
	r.recording.exchanges = append(r.recording.exchanges, e)
}

// isTaskPending reports whether an exchange is a question about a task that has not ended yet.
func isTaskPending(e exchange) bool {
	var task struct {
		Status string `json:"status"`
	}
	return isTaskRequest(e) && json.Unmarshal(e.Answer, &task) == nil && (task.Status == "enqueued" || task.Status == "processing")
}

// isTaskRequest reports whether an exchange is a question about a task.
func isTaskRequest(e exchange) bool {
	return e.Method == http.MethodGet && strings.HasPrefix(e.Path, "/tasks/")
}

// requestExchange is the request's part of an exchange. The request can still be sent.
func requestExchange(req *http.Request) (exchange, error) {
	e := exchange{Method: req.Method, Path: req.URL.RequestURI()}
	if req.Body == nil {
		return e, nil
	}
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return e, err
	}
	req.Body.Close()
	req.Body = io.NopCloser(bytes.NewReader(b))
	if e.Body = canonicalJSON(b); len(e.Body) > maxInlineBody {
		e.Body, e.Digest = nil, shortHash(e.Body)
	}
	return e, nil
}

// replayer is a transport that answers from a recording: the same request gets the same answers as then, in their order.
// Different requests may come in any order. It is safe for concurrent use.
type replayer struct {
	t testing.TB

	mu      sync.Mutex
	answers map[string][]exchange // by key, those that are still to be given
}

func newReplayer(t testing.TB, recorded recording) *replayer {
	p := &replayer{t: t, answers: map[string][]exchange{}}
	for _, e := range recorded.exchanges {
		p.answers[e.key()] = append(p.answers[e.key()], e)
	}
	return p
}

// RoundTrip implements http.RoundTripper.
func (p *replayer) RoundTrip(req *http.Request) (*http.Response, error) {
	e, err := requestExchange(req)
	if err != nil {
		return nil, err
	}
	answer, ok := p.nextAnswer(e.key())
	if !ok {
		p.t.Errorf("not in the recording: %.2000s", e.key())
		return nil, fmt.Errorf("%s %s is not in the recording", e.Method, e.Path)
	}
	return &http.Response{
		Status: http.StatusText(answer.Status), StatusCode: answer.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer.Answer)),
		ContentLength: int64(len(answer.Answer)), Request: req,
	}, nil
}

// nextAnswer takes the next answer to a request; false when none is left. The answer about a task is never used up, since
// a test may ask more often than the one that was recorded.
func (p *replayer) nextAnswer(key string) (exchange, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.answers[key]
	if len(left) == 0 {
		return exchange{}, false
	}
	answer := left[0]
	if left[0].Times--; left[0].Times <= 0 && !isTaskRequest(answer) {
		p.answers[key] = left[1:]
	}
	return answer, true
}
