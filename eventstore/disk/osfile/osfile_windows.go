package osfile

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// lockedOffset is where the locked byte lies: behind everything that such files hold, because Windows lets nobody else read
// or write locked bytes.
const lockedOffset = math.MaxUint32

// TryLock locks an open file for one holder until Unlock, or until the process ends. It does not wait: a locked file is
// ErrHeld.
func TryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: lockedOffset >> 1})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrHeld
	}
	return err
}

// Unlock releases a lock.
func Unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{OffsetHigh: lockedOffset >> 1})
}

// SyncFolder does nothing: NTFS keeps names in a log of its own, and Windows cannot sync a folder.
func SyncFolder(string) error { return nil }

// OpenFile is os.OpenFile for a file that is renamed or removed while it is open. It supports the flags os.O_RDWR,
// os.O_RDONLY, os.O_CREATE and os.O_TRUNC.
func OpenFile(path string, flag int, _ fs.FileMode) (*os.File, error) {
	access, creation := uint32(windows.GENERIC_READ), uint32(windows.OPEN_EXISTING)
	if flag&os.O_RDWR != 0 {
		access |= windows.GENERIC_WRITE
	}
	switch {
	case flag&os.O_CREATE != 0 && flag&os.O_TRUNC != 0:
		creation = windows.CREATE_ALWAYS
	case flag&os.O_CREATE != 0:
		creation = windows.OPEN_ALWAYS
	}
	return openShared(path, access, creation, windows.FILE_ATTRIBUTE_NORMAL)
}

// CreateUnnamed creates a file for reading and writing that disappears with its last use, however the process ends. Until
// then it has a name here.
func CreateUnnamed(folder string) (*os.File, error) {
	f, err := os.CreateTemp(folder, "unnamed-")
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	const access = windows.GENERIC_READ | windows.GENERIC_WRITE | windows.DELETE
	return openShared(f.Name(), access, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE)
}

// openShared opens a file that others may read, write, rename and remove meanwhile.
func openShared(path string, access, creation, attributes uint32) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	const shared = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	handle, err := windows.CreateFile(name, access, shared, nil, creation, attributes, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}

// How long Rename tries, and its pause between two attempts.
const (
	renameLimit = 2 * time.Second
	renamePause = 5 * time.Millisecond
)

// Rename is os.Rename, and retries for a while if another program has one of the files open: Windows does not replace a file
// that is being read, and virus scanners read files that were just written.
func Rename(from, to string) error {
	for began := time.Now(); ; time.Sleep(renamePause) {
		err := os.Rename(from, to)
		if err == nil || !IsInUse(err) || time.Since(began) > renameLimit {
			return err
		}
	}
}

// IsInUse reports whether an error means that a file cannot be removed or replaced while it is open or mapped.
func IsInUse(err error) bool {
	return errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION) ||
		errors.Is(err, windows.ERROR_USER_MAPPED_FILE)
}

// IsDiskFull reports whether an error means that the disk has no room.
func IsDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, syscall.ENOSPC)
}

// Number is 0: here a file's metadata does not contain its number.
func Number(fs.FileInfo) uint64 { return 0 }

// Holes is 0: here a file's metadata does not contain it.
func Holes(fs.FileInfo) int64 { return 0 }
