// Package meilitest gives tests a Meilisearch: a real one where LIEUDIT_TEST_MEILISEARCH names one, and otherwise what a
// real one answered when the test was recorded. Whoever asks what was not asked then fails: no answer is ever made up.
//
// To record: LIEUDIT_TEST_MEILISEARCH=http://127.0.0.1:7700#key go test ./... -run ... -record
package meilitest

import (
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

	"lieudit/queries/places/meili"
)

// Variable names a server in which tests may make indexes of their own: http://HOST:PORT, with #KEY where it wants one.
const Variable = "LIEUDIT_TEST_MEILISEARCH"

var record = flag.Bool("record", false, "write what "+Variable+" answers to testdata")

// Server is a server for one test, with an index of its own.
func Server(t testing.TB) meili.Server {
	t.Helper()
	s := meili.Server{Index: indexOf(t.Name()), Patience: time.Minute} // what is slow here is the test
	if !Real() {
		tape, err := read(tapeOf(t.Name()))
		if err != nil {
			t.Fatalf("%v; record it with %s=… -record", err, Variable)
		}
		s.URL, s.Transport = "http://recorded", newPlayer(t, tape)
		return s
	}
	s.URL, s.Key = address(t)
	forget(t, s)
	t.Cleanup(func() { forget(t, s) })
	if *record {
		r := newRecorder(versionOf(t, s))
		s.Transport = r
		t.Cleanup(func() {
			if t.Failed() {
				return
			}
			if err := r.tape.write(tapeOf(t.Name())); err != nil {
				t.Error(err)
			}
		})
	}
	return s
}

// Real says whether tests ask a real server.
func Real() bool { return os.Getenv(Variable) != "" }

func address(t testing.TB) (server, key string) {
	t.Helper()
	u, err := url.Parse(os.Getenv(Variable))
	if err != nil {
		t.Fatal(err)
	}
	key, u.Fragment = u.Fragment, ""
	return u.String(), key
}

// Versions are those of the servers that the recordings in testdata were made with, and how many recordings each made.
func Versions(t testing.TB) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*"+suffix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]int{}
	for _, file := range files {
		tape, err := read(strings.TrimSuffix(file, ".gz"))
		if err != nil {
			t.Fatal(err)
		}
		versions[tape.head.Version]++
	}
	return versions
}

func indexOf(test string) string {
	sum := sha256.Sum256([]byte(test))
	return "test-" + hex.EncodeToString(sum[:8])
}

const suffix = ".exchanges.jsonl"

// tapeOf is the file of a test's recording.
func tapeOf(test string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, test)
	return filepath.Join("testdata", plain+suffix)
}

func versionOf(t testing.TB, s meili.Server) string {
	t.Helper()
	v, err := client(s).VersionWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.PkgVersion
}

func client(s meili.Server) meilisearch.ServiceManager {
	return meilisearch.New(s.URL, meilisearch.WithAPIKey(s.Key), meilisearch.WithCustomClient(&http.Client{}), meilisearch.DisableRetries())
}

// forget deletes the test's index.
func forget(t testing.TB, s meili.Server) {
	t.Helper()
	task, err := client(s).DeleteIndex(s.Index)
	if err == nil {
		_, err = client(s).WaitForTask(task.TaskUID, 10*time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}
