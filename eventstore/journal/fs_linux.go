package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync does not sync the file's times, which saves one metadata write per group.
func datasync(f *os.File) error {
	err := retryOnEINTR(func() error { return unix.Fdatasync(int(f.Fd())) })
	return os.NewSyscallError("fdatasync", err)
}

func retryOnEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func reserve(f *os.File, size int64) error {
	err := retryOnEINTR(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // writing the zeros allocates the room
	}
	return os.NewSyscallError("fallocate", err)
}
