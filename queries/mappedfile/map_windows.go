package mappedfile

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapFile maps the first size bytes of a file for reading. Windows does not let anybody remove or replace the file while it is
// mapped.
func mapFile(f *os.File, size int64) ([]byte, error) {
	mapping, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, uint32(size>>32), uint32(size), nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateFileMapping", err)
	}
	address, err := windows.MapViewOfFile(mapping, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("MapViewOfFile", err), windows.CloseHandle(mapping))
	}
	// The view keeps the mapping alive. The conversion goes through the variable's address, because Go does not manage the memory
	// of the view.
	data := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), size)
	return data, windows.CloseHandle(mapping)
}

func unmapFile(data []byte) error {
	return windows.UnmapViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
}

// prefault does nothing here: pages are read when they are first used.
func prefault([]byte) error { return nil }
