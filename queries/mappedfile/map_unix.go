//go:build unix

package mappedfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of a file for reading.
func mapFile(f *os.File, size int64) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}

func unmapFile(data []byte) error { return unix.Munmap(data) }

// prefault asks the system to read a mapping into memory.
func prefault(data []byte) error { return unix.Madvise(data, unix.MADV_WILLNEED) }
