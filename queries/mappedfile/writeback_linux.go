package mappedfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// waitForWriteback waits until a range of a file is on the disk. It only paces the writer and does not make the data durable, so
// its errors do not matter.
func waitForWriteback(file *os.File, from, length int64) {
	unix.SyncFileRange(int(file.Fd()), from, length, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
}
