package service

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/metrics"

	"github.com/prometheus/client_golang/prometheus"
)

// The log is damaged in its second segment; without the indexes the start reads it.
func TestADamagedLogIsRefusedWithTheCommandThatSavesTheRest(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.CopyFS(data, os.DirFS("../cli/testdata/damaged-data")); err != nil {
		t.Fatal(err)
	}
	indexes, err := filepath.Glob(filepath.Join(data, "log", "core", "*.idx"))
	if err != nil || len(indexes) == 0 {
		t.Fatalf("%v, %v", indexes, err)
	}
	for _, path := range indexes {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{Data: data, Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	_, err = openLogs(t.Context(), c, metrics.NewCalls(prometheus.NewRegistry(), true, false))
	want := "lieudit log salvage --data " + data + " --out " + filepath.Join(data, "log-salvaged")
	if err == nil || !strings.Contains(err.Error(), "damaged at position 4735") || !strings.Contains(err.Error(), want) {
		t.Errorf("the start says %v, want the position and %q", err, want)
	}
}
