package journal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// slowSegmentFS is a folder in which making a segment blocks until finish is closed.
type slowSegmentFS struct {
	FS
	begun  chan struct{} // closed when the first segment is being made
	finish chan struct{}
	isSlow bool
}

func (f *slowSegmentFS) Open(name string, create bool) (File, error) {
	if f.isSlow && create && !strings.Contains(name, ".idx") {
		select {
		case <-f.begun:
		default:
			close(f.begun)
		}
		<-f.finish
	}
	return f.FS.Open(name, create)
}

func appendText(ctx context.Context, j *Journal, stream string, size int) error {
	_, err := j.Append(ctx, stream, eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: "t", Data: make([]byte, size)}})
	return err
}

// TestAnAppendAbandonedWhileASegmentIsMadeLeavesTheNextSegmentReadable: the append that needs the next segment is not made,
// and those after it are.
func TestAnAppendAbandonedWhileASegmentIsMadeLeavesTheNextSegmentReadable(t *testing.T) {
	t.Parallel()
	const segmentSize, eventSize = 1 << 20, 200 << 10
	dir := t.TempDir()
	fs := &slowSegmentFS{FS: Dir(dir), begun: make(chan struct{}), finish: make(chan struct{})}
	j, err := Open(dir, Options{FS: fs, SegmentSize: segmentSize, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	fs.isSlow = true // no segment is made before the first append
	const fitting = segmentSize/eventSize - 1
	for range fitting {
		if err := appendText(t.Context(), j, "a-1", eventSize); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	abandoned := make(chan error, 1)
	go func() {
		for {
			if err := appendText(ctx, j, "a-1", eventSize); err != nil {
				abandoned <- err
				return
			}
		}
	}()
	<-fs.begun
	waitUntil(t, func() bool { // the writer has taken the append and waits for its segment
		j.queue.mu.Lock()
		defer j.queue.mu.Unlock()
		return len(j.queue.pending) == 0 && isLocked(j)
	})
	cancel()
	if err := <-abandoned; !errors.Is(err, eventstore.ErrUnknown) {
		t.Fatalf("the abandoned append: %v, want ErrUnknown", err)
	}
	close(fs.finish)
	for _, stream := range []string{"b-1", "a-1"} {
		if err := appendText(t.Context(), j, stream, 100); err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range j.ReadStream(t.Context(), stream, 0, eventstore.Forward) {
			if err != nil || int(e.Revision) != n {
				t.Fatalf("%s: got %s@%d, %v, want revision %d", stream, e.Stream, e.Revision, err, n)
			}
			n++
		}
		if stream == "b-1" && n != 1 {
			t.Errorf("%s has %d events, want 1", stream, n)
		}
	}
	if _, err := j.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// isLocked reports whether the writer holds its lock, as it does while it waits for a segment.
func isLocked(j *Journal) bool {
	if j.writer.mu.TryLock() {
		j.writer.mu.Unlock()
		return false
	}
	return true
}
