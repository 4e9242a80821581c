package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/table/tabletest"
)

// ready is what readiness says.
func (st *stage) ready(t *testing.T) string {
	t.Helper()
	resp, err := st.client.Get(st.ops + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOlderCopyOfTheLogStopsTheReadModels(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (logDir string, change func(*service.Config), swap func(func())){
		"embedded": nil,
		"servers": func(t *testing.T) (string, func(*service.Config), func(func())) {
			n := startNode(t)
			return n.dir, onServers(n, tabletest.Postgres(t)), func(restore func()) {
				n.stop()
				restore()
				n.start(t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if start == nil {
				restoredBetweenRuns(t)
				return
			}
			dir, change, swap := start(t)
			restoredWhileRunning(t, dir, change, swap)
		})
	}
}

// restoredBetweenRuns: the log is restored while the service is down. Keys follow the log, read models stand still
// until they are rebuilt.
func restoredBetweenRuns(t *testing.T) {
	data := t.TempDir()
	here := func(c *service.Config) { c.Data = data }
	st := raise(t, here)
	st.run(t, `account open "Chez Paul" --id paul --plan STARTER`)
	st.stop()
	older := filepath.Join(t.TempDir(), "older")
	copyFolder(t, filepath.Join(data, "log"), older)

	st = raise(t, here)
	lost := strings.TrimSpace(st.run(t, `key issue paul --label lost`))
	st.stop()
	restore(t, older, filepath.Join(data, "log"))

	st = raiseUnready(t, here)
	st.await(t, "the read models to say why they stand still", func() bool {
		return strings.Contains(st.ready(t), "the log is not the one")
	})
	within(t, 5*time.Second, "a key the restored log does not hold is refused", func() bool {
		return st.me(t, lost) == http.StatusUnauthorized
	})
	kept := strings.TrimSpace(st.run(t, `key issue paul --label kept`))
	if got := st.me(t, kept); got != http.StatusOK {
		t.Errorf("a key issued on the restored log: got %d, want 200", got)
	}
	for _, model := range []string{"register", "history", "places", "usage"} {
		st.run(t, "projections rebuild "+model)
	}
	st.await(t, "the rebuilt read models to answer", func() bool {
		return !strings.Contains(st.ready(t), "the log is not the one") && st.status(t, st.ops+"/readyz") == http.StatusOK
	})
	within(t, time.Second, "the list holds the kept key and not the lost one", func() bool {
		got := st.run(t, `key list paul`)
		return strings.Contains(got, "kept") && !strings.Contains(got, "lost")
	})
}

// restoredWhileRunning: the log is restored under a running service, which must not serve what the log does not say.
func restoredWhileRunning(t *testing.T, dir string, change func(*service.Config), swap func(func())) {
	st := raise(t, change)
	st.run(t, `account open "Chez Paul" --id paul --plan STARTER`)
	older := filepath.Join(t.TempDir(), "older")
	swap(func() { copyFolder(t, dir, older) })
	st.await(t, "the service to be back", func() bool { return st.status(t, st.ops+"/readyz") == http.StatusOK })
	lost := strings.TrimSpace(st.run(t, `key issue paul --label lost`))
	if got := st.me(t, lost); got != http.StatusOK {
		t.Fatalf("got %d, want 200", got)
	}
	swap(func() { restore(t, older, dir) })
	within(t, 5*time.Second, "readiness says that the log is another", func() bool {
		return strings.Contains(st.ready(t), "the log is not the one")
	})
	within(t, 1200*time.Millisecond, "a key that only the lost log held gets 503", func() bool {
		return st.me(t, lost) == http.StatusServiceUnavailable
	})
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func restore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, from, to)
}
