package meilitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"lieudit/eventstore/meiliclient"
)

// recorder passes requests on and notes what is answered.
type recorder struct {
	next http.RoundTripper

	mu        sync.Mutex
	recording recording
	latest    map[string]int // by key, the latest exchange
}

func newRecorder(version string) *recorder {
	return &recorder{next: meiliclient.NewTransport(), recording: recording{header: recordingHeader{version}}, latest: map[string]int{}}
}

// RoundTrip is one of http.RoundTripper.
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

// recordExchange notes an exchange. Of those about a task that goes on, the last alone.
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

func isTaskPending(e exchange) bool {
	var task struct {
		Status string `json:"status"`
	}
	return isTaskRequest(e) && json.Unmarshal(e.Answer, &task) == nil && (task.Status == "enqueued" || task.Status == "processing")
}

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

// replayer answers from a recording: the same request gets the answers it got then, in their order.
type replayer struct {
	t testing.TB

	mu      sync.Mutex
	answers map[string][]exchange // by key, those that were not given yet
}

func newReplayer(t testing.TB, recorded recording) *replayer {
	p := &replayer{t: t, answers: map[string][]exchange{}}
	for _, e := range recorded.exchanges {
		p.answers[e.key()] = append(p.answers[e.key()], e)
	}
	return p
}

// RoundTrip is one of http.RoundTripper.
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

// nextAnswer is the next nextAnswer to a request. How a task ended can be asked again and again.
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
