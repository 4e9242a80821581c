package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/disk/disktest"
)

// fillDisk fills the disk of a folder to its last byte, and returns the file that does so.
func fillDisk(t *testing.T, folder string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(folder, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() // what it does not hold any more is of no interest
	for size := 1 << 20; size > 0; size /= 16 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return file.Name()
}

// TestAFullDiskUnderARunningServiceLosesNothing: the log has room that was taken ahead, so that writes continue for a while; what is
// acknowledged is shown once there is room for the read models again.
func TestAFullDiskUnderARunningServiceLosesNothing(t *testing.T) {
	t.Parallel()
	disk := disktest.Mount(t, "192m")
	svc := startService(t, func(c *service.Config) { c.Data = filepath.Join(disk, "data") })
	key := svc.openAccount(t, "paul", "m")
	filler := fillDisk(t, disk)
	svc.mustSend(t, key, "POST /locations/referentiels/m/sites:sync", sitesWithOddText(2000))
	if got := svc.statusOfMe(t, key); got != http.StatusOK {
		t.Errorf("/me: %d, want 200", got)
	}
	waitUntil(t, "readiness says that the disk is full", func() bool {
		return strings.Contains(svc.readiness(t).text, "disk is full")
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it is ready again", func() bool { return svc.readiness(t).parts["read models"] == "ok" })
	waitUntil(t, "the export has all sites", func() bool {
		return strings.Count(svc.mustSend(t, key, "GET /locations/referentiels/m/sites:export?format=ndjson", ""), `"external_id"`) == 2000
	})
}
