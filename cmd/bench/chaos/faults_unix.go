//go:build unix

package chaos

import (
	"syscall"
	"time"
)

// usedSpace returns how many bytes of a disk are in use.
func usedSpace(mount string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(mount, &disk); err != nil {
		return 0, err
	}
	return int64(disk.Blocks-disk.Bfree) * int64(disk.Bsize), nil
}

// stallNode stops the log node with SIGSTOP for a while: its connections stay open, and it answers nothing.
func (r *run) stallNode(lasts time.Duration) error {
	r.nodeLock.Lock()
	defer r.nodeLock.Unlock()
	r.logf("log stalled for %.1f s", lasts.Seconds())
	if err := r.node.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(lasts)
	return r.node.Signal(syscall.SIGCONT)
}
