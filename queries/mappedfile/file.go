package mappedfile

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"
)

// File is an open file. It is safe for concurrent use until Close. Sections and views of them lie in the mapping and must not be
// used after Close. Reads of a file that may change while it is open belong in Guard.
type File struct {
	format  Format
	file    *os.File // which Verify reads
	info    os.FileInfo
	data    []byte
	version uint32
	entries []sectionEntry // by number; none at 0
	digest  string
	damaged atomic.Pointer[error]
}

// Open maps a file after it has checked the header and the small sections. The file must not be changed while it is open: new ones
// are written next to it and renamed into place. It fails with the format's ErrOther or ErrDamaged.
func Open(path string, format Format) (f *File, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < headerSize {
		return nil, fmt.Errorf("%s: %w", path, format.ErrOther)
	}
	data, err := mapFile(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	f = &File{format: format, file: file, info: info, data: data}
	if err := f.Guard(f.check); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), unmapFile(data))
	}
	return f, nil
}

// check checks the header, the table and the small sections.
func (f *File) check() (err error) {
	if f.version, f.entries, err = f.format.parseHeader(f.data); err != nil {
		return err
	}
	f.digest = digestOf(f.data[:f.format.headerLength(f.version)])
	for id, e := range f.entries {
		if part := f.Section(Section(id)); len(part) <= f.format.CheckedAtOpen && checksum(part) != e.sum {
			return fmt.Errorf("%w: section %d", f.format.ErrDamaged, id)
		}
	}
	return nil
}

// Close unmaps the file. All readers must be done, except Verify, which then ends with an error.
func (f *File) Close() error { return errors.Join(f.file.Close(), unmapFile(f.data)) }

// Section returns the bytes of a section. They begin at a multiple of 8 in memory. A section that the version of the file
// does not have is empty.
func (f *File) Section(id Section) []byte {
	if int(id) >= len(f.entries) {
		return nil
	}
	e := f.entries[id]
	return f.data[e.offset : e.offset+e.length : e.offset+e.length]
}

// Version is the version of the format that the file has.
func (f *File) Version() uint32 { return f.version }

// Size is the size of the file in bytes.
func (f *File) Size() int64 { return f.info.Size() }

// Digest identifies the content of the file. Copies of a file have the same digest.
func (f *File) Digest() string { return f.digest }

// Modified is the modification time of the file.
func (f *File) Modified() time.Time { return f.info.ModTime() }

// Info is the file's metadata from when it was opened.
func (f *File) Info() os.FileInfo { return f.info }

// Prefault asks the system to read the file into memory, so that the first queries do not wait for the disk.
// On Windows it does nothing.
func (f *File) Prefault() error { return prefault(f.data) }

// Guard runs read, which reads the mapping. When a page of the file cannot be read, because the file was cut short or the disk
// fails, read ends, the file is marked as damaged and the process continues. Guard returns the damage even if read succeeded,
// because it may have read damaged data. It covers one goroutine: a goroutine that read starts needs its own Guard.
func (f *File) Guard(read func() error) (err error) {
	if err := f.Damage(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if !f.isMappingFault(cause) {
				panic(cause)
			}
			err = f.MarkDamaged(fmt.Errorf("%w: it cannot be read any more: it was cut short, or the disk fails", f.format.ErrDamaged))
		}
	}()
	err = read()
	if damage := f.Damage(); damage != nil {
		return damage
	}
	return err
}

// isMappingFault reports whether a panic comes from a read of the mapping.
func (f *File) isMappingFault(cause any) bool {
	err, ok := cause.(error)
	if !ok {
		return false
	}
	fault, ok := errors.AsType[interface {
		runtime.Error
		Addr() uintptr
	}](err)
	if !ok || len(f.data) == 0 {
		return false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
	return fault.Addr() >= first && fault.Addr()-first < uintptr(len(f.data))
}

// MarkDamaged marks the file as damaged permanently. It returns the reason of the first call.
func (f *File) MarkDamaged(reason error) error {
	f.damaged.CompareAndSwap(nil, &reason)
	return f.Damage()
}

// Damage is the reason why the file must not be read, nil while it may be.
func (f *File) Damage() error {
	if reason := f.damaged.Load(); reason != nil {
		return *reason
	}
	return nil
}

// verifyChunk is the number of bytes that Verify reads before it checks the context.
const verifyChunk = 256 << 10

// Verify reads the whole file, checks every section and marks any damage. It reads the file instead of the mapping, so a slow disk
// does not block other readers, and a failing disk is an error rather than a fault.
func (f *File) Verify(ctx context.Context) error { return f.verify(ctx, func(time.Duration) {}) }

// VerifyGently is Verify while queries run: it leaves them three quarters of a core and of the disk.
func (f *File) VerifyGently(ctx context.Context) error {
	const longest = 2 * time.Millisecond // on a slow disk the reads themselves leave the core idle
	return f.verify(ctx, func(worked time.Duration) { time.Sleep(min(3*worked, longest)) })
}

// verify checks all sections. It calls pause after each chunk with the time that the chunk took.
func (f *File) verify(ctx context.Context, pause func(worked time.Duration)) error {
	damaged := f.format.ErrDamaged
	err := f.verifyHeader()
	buf := make([]byte, verifyChunk)
	for id := 1; id < len(f.entries) && err == nil; id++ {
		var sum uint32
		if sum, err = f.readChecksum(ctx, f.entries[id], buf, pause); err == nil && sum != f.entries[id].sum {
			err = fmt.Errorf("%w: section %d", damaged, id)
		}
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, os.ErrClosed):
		return errors.Join(err, f.Damage())
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: it was cut short", damaged)
	case !errors.Is(err, damaged):
		err = fmt.Errorf("%w: %w", damaged, err)
	}
	return f.MarkDamaged(err)
}

// verifyHeader checks that the header and the table have not changed since the file was opened.
func (f *File) verifyHeader() error {
	head := make([]byte, f.format.headerLength(f.version))
	if _, err := f.file.ReadAt(head, 0); err != nil {
		return err
	}
	if digestOf(head) != f.digest {
		return fmt.Errorf("%w: header", f.format.ErrDamaged)
	}
	return nil
}

// readChecksum computes the checksum of a section and pauses between chunks.
func (f *File) readChecksum(ctx context.Context, e sectionEntry, buf []byte, pause func(time.Duration)) (sum uint32, err error) {
	table := crcTable()
	for from := e.offset; from < e.offset+e.length; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		begun := time.Now()
		part := buf[:min(uint64(len(buf)), e.offset+e.length-from)]
		if _, err := f.file.ReadAt(part, int64(from)); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, table, part)
		from += uint64(len(part))
		pause(time.Since(begun))
	}
	return sum, nil
}
