package offline_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"lieudit/eventstore/journal"
	"lieudit/eventstore/journal/offline"
)

func TestCopyTakesNoRoomForWhatIsNotWritten(t *testing.T) {
	t.Parallel()
	src, dst := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "copy")
	j, err := journal.Open(src, journal.Options{SegmentSize: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if _, err := appendBatch(t.Context(), j, "account-1", 100); err != nil {
		t.Fatal(err)
	}
	if _, err := offline.CopyLog(t.Context(), src, dst); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dst, segmentName(0)))
	if err != nil {
		t.Fatal(err)
	}
	if taken := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != 8<<20 || taken > 1<<20 {
		t.Errorf("a segment of %d bytes takes %d on disk", info.Size(), taken)
	}
}
