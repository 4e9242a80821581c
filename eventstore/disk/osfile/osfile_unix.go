//go:build unix

package osfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// TryLock locks an open file for one holder until Unlock, or until the process ends. It does not wait: a locked file is
// ErrHeld.
func TryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// Unlock releases a lock. Closing the file alone is not enough while a process that is being forked has a copy of it.
func Unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// SyncFolder returns when the names of a folder are on disk.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// OpenFile is os.OpenFile for a file that is renamed or removed while it is open.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, mode)
}

// CreateUnnamed creates a file for reading and writing that disappears with its last use, however the process ends.
func CreateUnnamed(folder string) (*os.File, error) {
	f, err := os.CreateTemp(folder, "unnamed-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Rename is os.Rename. It replaces a file that others read meanwhile.
func Rename(from, to string) error { return os.Rename(from, to) }

// IsInUse reports whether an error means that a file cannot be removed or replaced while it is open. Here every file can be.
func IsInUse(error) bool { return false }

// IsDiskFull reports whether an error means that the disk has no room.
func IsDiskFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

// Number identifies a file across renames: no other file of its disk has the same number. It is 0 if unknown.
func Number(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// Holes is how many bytes of a file take no room on the disk: it has holes, or the file system compresses. It is 0 if unknown.
func Holes(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return max(0, info.Size()-int64(stat.Blocks)*512)
	}
	return 0
}
