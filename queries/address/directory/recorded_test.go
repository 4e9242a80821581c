package directory_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"lieudit/eventstore/meiliclient"
	"lieudit/eventstore/meiliclient/meilitest"
)

// recordedDigests pairs the digests of the tests' vintages with those that they had when the exchanges were recorded. A
// digest is part of the name of an index and changes with the format of a vintage's file; nothing else of an exchange
// does. Once the exchanges are recorded again the list is empty.
var recordedDigests = []string{
	"ecc39ed00321145d", "a2d2348732ce4340", // the hamlet
	"4abdb687379e015e", "b99777a31d18d8ce", // the hamlet without its first row
}

// server is a server for one test. A recording answers by the digests that it knows.
func server(t testing.TB) meiliclient.Server {
	t.Helper()
	s := meilitest.Server(t)
	if !meilitest.UsesRealServer() {
		s.Transport = digestTranslator{s.Transport}
	}
	return s
}

// digestTranslator writes recorded digests into requests, and those of today into answers.
type digestTranslator struct{ recording http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d digestTranslator) RoundTrip(req *http.Request) (*http.Response, error) {
	recorded := slices.Clone(recordedDigests)
	slices.Reverse(recorded)
	toRecorded, toToday := strings.NewReplacer(recordedDigests...), strings.NewReplacer(recorded...)
	sent := req.Clone(req.Context())
	sent.URL.Path, sent.URL.RawPath = toRecorded.Replace(req.URL.Path), toRecorded.Replace(req.URL.RawPath)
	sent.URL.RawQuery = toRecorded.Replace(req.URL.RawQuery)
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		sent.Body = io.NopCloser(strings.NewReader(toRecorded.Replace(string(text))))
	}
	answer, err := d.recording.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	text = []byte(toToday.Replace(string(text)))
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}
