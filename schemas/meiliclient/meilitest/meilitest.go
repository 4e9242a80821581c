// Package meilitest gives tests a Meilisearch server: a real one where LIEUDIT_TEST_MEILISEARCH names one, and
// otherwise what a real one answered when the test was recorded. Its one constraint: it invents no answer. A request
// that is not in the recording fails the test.
//
//	Server ──► meiliclient.Server whose Transport is a replayer (testdata/TEST.exchanges.jsonl)
//	                              or, with -record, a recorder in front of the real server
//
// The name of the test gives the file of its recording and the name of its index, so a test that is renamed must be
// recorded again:
//
//	LIEUDIT_TEST_MEILISEARCH=http://127.0.0.1:7700#key go test ./... -run ... -record
package meilitest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/schemas/meiliclient"
)

// EnvVariable names a server in which tests may make indexes of their own: http://HOST:PORT, with #KEY where it wants one.
const EnvVariable = "LIEUDIT_TEST_MEILISEARCH"

var recordFlag = flag.Bool("record", false, "write what "+EnvVariable+" answers to testdata")

// Server is a server for one test, with an index of its own, which does not exist yet and is deleted after the test. With
// -record the recording is written after the test, unless the test failed. Without a real server and without a recording
// the test fails.
func Server(t testing.TB) meiliclient.Server {
	t.Helper()
	s := meiliclient.Server{Index: testIndexName(t.Name()), Timeout: time.Minute} // a slow test is not a failure of the server
	if !UsesRealServer() {
		recorded, err := readRecording(recordingPath(t.Name()))
		if err != nil {
			t.Fatalf("%v; record it with %s=… -record", err, EnvVariable)
		}
		s.URL, s.Transport = "http://recorded", newReplayer(t, recorded)
		return s
	}
	s.URL, s.Key = serverAddress(t)
	deleteIndex(t, s) // a run that was killed may have left it
	t.Cleanup(func() { deleteIndex(t, s) })
	if *recordFlag {
		r := newRecorder(serverVersion(t, s))
		s.Transport = r
		t.Cleanup(func() {
			if t.Failed() {
				return
			}
			if err := r.recording.write(recordingPath(t.Name())); err != nil {
				t.Error(err)
			}
		})
	}
	return s
}

// UsesRealServer reports whether tests use a real server.
func UsesRealServer() bool { return os.Getenv(EnvVariable) != "" }

// serverAddress reads EnvVariable: the server's URL, and the key behind "#".
func serverAddress(t testing.TB) (server, key string) {
	t.Helper()
	u, err := url.Parse(os.Getenv(EnvVariable))
	if err != nil {
		t.Fatal(err)
	}
	key, u.Fragment = u.Fragment, ""
	return u.String(), key
}

// RecordedVersions are the versions of the servers that the recordings in testdata were made with, and the number of
// recordings of each.
func RecordedVersions(t testing.TB) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*"+recordingSuffix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]int{}
	for _, file := range files {
		recorded, err := readRecording(strings.TrimSuffix(file, ".gz"))
		if err != nil {
			t.Fatal(err)
		}
		versions[recorded.header.Version]++
	}
	return versions
}

// testIndexName is the name of a test's index. It stands in the recorded requests, so it depends on the test's name alone.
func testIndexName(test string) string {
	sum := sha256.Sum256([]byte(test))
	return "test-" + hex.EncodeToString(sum[:8])
}

const recordingSuffix = ".exchanges.jsonl"

// recordingPath is the file of a test's recording, without .gz.
func recordingPath(test string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, test)
	return filepath.Join("testdata", plain+recordingSuffix)
}

// serverVersion asks a real server for its version.
func serverVersion(t testing.TB, s meiliclient.Server) string {
	t.Helper()
	v, err := newClient(s).Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.PkgVersion
}

// newClient is a client whose requests are not recorded: those of the helpers are no part of a test.
func newClient(s meiliclient.Server) meilisearch.ServiceManager {
	return meilisearch.New(s.URL, meilisearch.WithAPIKey(s.Key), meilisearch.WithCustomClient(&http.Client{}), meilisearch.DisableRetries())
}

// deleteIndex deletes the test's index, if there is one, and waits until it is gone. It also runs in Cleanup, when the context of
// the test has ended.
func deleteIndex(t testing.TB, s meiliclient.Server) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	task, err := newClient(s).DeleteIndex(ctx, s.Index)
	if err == nil {
		_, err = newClient(s).WaitForTask(ctx, task.TaskUID, 10*time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}
