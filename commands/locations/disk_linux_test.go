package locations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/disk/disktest"
	"lieudit/eventstore/journal"
)

// TestSyncOnAFullDiskAppendsNothing fills the disk of the log at each segment that a large sync takes. Once there is room
// again, the same request is done by the same instance.
func TestSyncOnAFullDiskAppendsNothing(t *testing.T) {
	const rows, segment, step = 8_000, 2 << 20, 2 << 20
	disktest.Mount(t, "1m")
	failed := 0
	for free := 1; ; free++ {
		done := false
		t.Run(fmt.Sprintf("%d_KiB_free", free*step>>10), func(t *testing.T) {
			folder := disktest.Mount(t, "32m")
			j, err := journal.Open(filepath.Join(folder, "log"), journal.Options{SegmentSize: segment})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { j.Close() })
			s := newFixture(t)
			s.store = j
			mustOpen(t, s.newInstance(j), "magasins")
			mustPut(t, s.newInstance(j), rowAt("x", "X", 44))
			ballast := filepath.Join(folder, "ballast")
			fillDisk(t, folder, ballast, free*step)
			f := &faultyStore{Store: j, Vault: s.vault}
			l := New(f, eventstore.NewCodec(f), s.plans, s.ban, time.Now)
			b := Batch{Rows: manyRows(rows), IdempotencyKey: "k", RequestDigest: []byte("r")}
			before := s.events(t, "locations-a")
			_, _, err = l.WriteBatch(t.Context(), "a", shopMeta, "magasins", b)
			if done = err == nil; done {
				return
			}
			if failed++; !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got %v, want a full disk", err)
			}
			if after := s.events(t, "locations-a"); len(after) != len(before) {
				t.Fatalf("the sync that failed appended %v", after[len(before):])
			}
			if got, err := l.CountLocations(t.Context(), "a"); err != nil || got.Sites != 1 {
				t.Errorf("got %+v, %v on the full disk", got, err)
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			o, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", b)
			for late := time.Now().Add(time.Minute); errors.Is(err, eventstore.ErrUnavailable) && time.Now().Before(late); {
				o, _, err = l.WriteBatch(t.Context(), "a", shopMeta, "magasins", b) // until the log finds that there is room
			}
			if err != nil || o.Created != rows || o.AccountActive != 1 {
				t.Errorf("with room again: got %+v, %v", o.SiteWriteSummary, err)
			}
		})
		if done || t.Failed() || free > 10 {
			break
		}
	}
	if failed < 2 {
		t.Errorf("the disk was full at %d places, want several", failed)
	}
}

// fillDisk fills a disk until n bytes are free.
func fillDisk(t *testing.T, disk, ballast string, free int) {
	t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(disk, &stat); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ballast, make([]byte, int(stat.Bavail)*int(stat.Bsize)-free), 0o600); err != nil {
		t.Fatal(err)
	}
}
