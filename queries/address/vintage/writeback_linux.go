package vintage

import (
	"os"

	"golang.org/x/sys/unix"
)

// waitForWriteback returns when a stretch of a file is on the disk, or cannot be waited for: it makes nothing durable, so that it
// need not succeed.
func waitForWriteback(file *os.File, from, length int64) {
	unix.SyncFileRange(int(file.Fd()), from, length, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
}
