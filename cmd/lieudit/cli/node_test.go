package cli_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/schemas/deadlinetest"
)

func TestNodeServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), deadlinetest.Scale(deadlinetest.DefaultLimit))
	defer stop()
	out, outWriter := io.Pipe()
	var stderr bytes.Buffer
	p := newTestProgram(outWriter, &stderr, nil)
	ended := make(chan int, 1)
	go func() {
		ended <- p.Run(ctx, []string{"lieudit", "node", "--data", filepath.Join(dir, "log"), "--listen", "127.0.0.1:0"})
		outWriter.Close()
	}()
	line := make([]byte, 4096)
	n, _ := out.Read(line)
	if got := string(line[:n]); !strings.Contains(got, "esdb://127.0.0.1:") {
		t.Fatalf("it said %q\n%s", got, stderr.String())
	}
	code, _, second := runCommand(t, nil, "lieudit node --listen 127.0.0.1:0 --data "+filepath.Join(dir, "log"))
	if code != 1 || !strings.Contains(second, "process") {
		t.Errorf("a second node on the folder: exit %d, %q", code, second)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d after being stopped: %s", code, stderr.String())
	}
}
