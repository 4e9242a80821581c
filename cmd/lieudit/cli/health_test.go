package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealthPrintsAReasonOfSeveralLinesOnOne: the reason of a database comes in indented lines, and each part has one line of the table.
func TestHealthPrintsAReasonOfSeveralLinesOnOne(t *testing.T) {
	t.Parallel()
	instance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"ready":false,"parts":{"database":"failed to connect to\n\t127.0.0.1:1:\tdial error\n\n\tsecond address"}}`))
	}))
	defer instance.Close()
	code, out, stderr := runCommand(t, nil, "lieudit health --ops "+instance.URL)
	if want := "database  failed to connect to; 127.0.0.1:1: dial error; second address"; code != 1 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, printed\n%s%s\nwant %q", code, out, stderr, want)
	}
}
