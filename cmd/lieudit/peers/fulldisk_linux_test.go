package peers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/eventstore/disk/disktest"
)

// A release does not fit on the disk of an instance. It says so, serves on what it has, leaves nothing half-written, and takes over the
// next one that fits.
func TestAFullDiskLeavesNothingHalfWrittenAndIsSaid(t *testing.T) {
	t.Parallel()
	data := filepath.Join(disktest.Mount(t, "1m"), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstanceIn(t, data, log, "b", nil).run()
	old := a.importNote("2026-01", 100_000)
	b.waitFor(old)
	a.importNote("2026-02", 3_000_000)
	waitUntil(t, "it says that the disk is full", func() bool {
		err := b.follower.Check()
		return err != nil && strings.Contains(err.Error(), "the disk is full")
	})
	waitUntil(t, "the others hear it", func() bool {
		s, err := a.folder.ReadStanding()
		return err == nil && len(s.Behind()) == 1 && strings.Contains(s.Behind()[0].Problem, "the disk is full")
	})
	if b.servedSum() != old {
		t.Error("it does not serve on what it has")
	}
	fits := a.importNote("2026-03", 100_000)
	b.waitFor(fits)
	if entries, err := os.ReadDir(filepath.Join(data, "notes", "fetching")); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	waitUntil(t, "nothing is wrong any more", func() bool { return b.follower.Check() == nil })
}
