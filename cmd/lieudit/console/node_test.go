package console_test

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
	ctx, stop := context.WithTimeout(t.Context(), deadlinetest.Limit(deadlinetest.Hang))
	defer stop()
	out, told := io.Pipe()
	var complaints bytes.Buffer
	p := program(told, &complaints, nil)
	ended := make(chan int, 1)
	go func() {
		ended <- p.Run(ctx, []string{"lieudit", "node", "--data", filepath.Join(dir, "log"), "--listen", "127.0.0.1:0"})
		told.Close()
	}()
	line := make([]byte, 4096)
	n, _ := out.Read(line)
	if got := string(line[:n]); !strings.Contains(got, "esdb://127.0.0.1:") {
		t.Fatalf("it said %q\n%s", got, complaints.String())
	}
	code, _, second := run(t, nil, "lieudit node --listen 127.0.0.1:0 --data "+filepath.Join(dir, "log"))
	if code != 1 || !strings.Contains(second, "process") {
		t.Errorf("a second node on the folder: exit %d, %q", code, second)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d after being stopped: %s", code, complaints.String())
	}
}
