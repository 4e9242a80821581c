package vintage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	"golang.org/x/sys/unix"
)

// Meta describes a vintage. It is stored in the file.
type Meta struct {
	Millesime  string `json:"millesime"`
	Addresses  int    `json:"adresses"`
	Streets    int    `json:"voies"`
	Localities int    `json:"lieux_dits"`
	Communes   int    `json:"communes"`
	Synthetic  bool   `json:"synthetique,omitempty"`
}

// Vintage is an open file. It is safe for concurrent use until Close. Byte slices and columns that its methods return
// lie in the mapping and must not be used after Close. Reads of a file that may change meanwhile belong in Guard.
type Vintage struct {
	Meta
	file     *os.File // which Verify reads
	info     os.FileInfo
	data     []byte
	format   uint32
	entries  [sectionEnd]sectionEntry
	sections [sectionEnd][]byte
	digest   string
	damaged  atomic.Pointer[error]

	terms       texts
	termStreets lists
	termPlaces  lists
	deletes     lists
	sounds      lists
	names       texts
	nameTerms   lists
	communes    records
	places      records
	streets     records
	facets      records
	aliases     texts
	storedUUIDs records
	formerUUIDs records
}

// Open maps a file after it has checked the header and the small sections. The file must not be changed while it is
// open: new vintages are written beside it and renamed into place.
func Open(path string) (*Vintage, error) { return openChecked(path, maxCheckedAtOpen) }

// openChecked opens a file and checks the sections up to a size.
func openChecked(path string, checkedUpTo int) (v *Vintage, err error) {
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
		return nil, fmt.Errorf("%s: %w", path, ErrNotVintage)
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	v = &Vintage{file: file, info: info, data: data}
	if err := v.Guard(func() error { return v.loadSections(checkedUpTo) }); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), unix.Munmap(data))
	}
	return v, nil
}

// Close unmaps the file. No reader may be left, except a Verify, which then ends with an error.
func (v *Vintage) Close() error { return errors.Join(v.file.Close(), unix.Munmap(v.data)) }

// Size is the size of the file in bytes.
func (v *Vintage) Size() int64 { return v.info.Size() }

// Digest identifies the content of the file. Copies of a file have the same digest.
func (v *Vintage) Digest() string { return v.digest }

// Modified is the modification time of the file.
func (v *Vintage) Modified() time.Time { return v.info.ModTime() }

// Info is the file's metadata from when it was opened.
func (v *Vintage) Info() os.FileInfo { return v.info }

// Prefault asks the system to read the file into memory, so that the first queries do not wait for the disk.
func (v *Vintage) Prefault() error { return unix.Madvise(v.data, unix.MADV_WILLNEED) }

// loadSections checks the file and slices its sections.
func (v *Vintage) loadSections(checkedUpTo int) (err error) {
	if v.format, v.entries, err = parseHeader(v.data); err != nil {
		return err
	}
	v.digest = digestOf(v.data[:headerLength(v.format)])
	for id, e := range v.entries {
		part := v.data[e.offset : e.offset+e.length : e.offset+e.length]
		if len(part) <= checkedUpTo && checksum(part) != e.sum {
			return fmt.Errorf("%w: section %d", ErrDamaged, id)
		}
		v.sections[id] = part
	}
	if err := json.Unmarshal(v.sections[secMeta], &v.Meta); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	v.bindViews()
	if v.Addresses != len(v.sections[secNumbers])/2 || v.Communes != v.communes.count()-1 || v.streets.count() < 1 {
		return fmt.Errorf("%w: its counts contradict each other", ErrDamaged)
	}
	return nil
}

// bindViews lays the typed views over the sections.
func (v *Vintage) bindViews() {
	p := &v.sections
	v.terms = texts{Column(p[secTermFirst]), p[secTermText]}
	v.termStreets = lists{Column(p[secTermStreetsFirst]), Column(p[secTermStreets])}
	v.termPlaces = lists{Column(p[secTermPlacesFirst]), Column(p[secTermPlaces])}
	v.deletes = lists{Column(p[secDeletesFirst]), Column(p[secDeletes])}
	v.sounds = lists{Column(p[secSoundsFirst]), Column(p[secSounds])}
	v.names = texts{Column(p[secNameFirst]), p[secNameText]}
	v.nameTerms = lists{Column(p[secNameTermsFirst]), Column(p[secNameTerms])}
	v.communes = records{p[secCommunes], communeSize}
	v.places = records{p[secPlaces], placeSize}
	v.streets = records{p[secStreets], streetSize}
	v.facets = records{p[secFacets], facetSize}
	v.storedUUIDs = records{p[secStoredUUIDs], 16}
	v.formerUUIDs = records{p[secFormerUUIDs], 16}
	v.aliases = texts{Column(p[secAliasFirst]), p[secAliasText]}
}

// Guard runs f, which reads the vintage. When a page of the file cannot be read, because the file was cut short or the
// disk fails, f ends, the vintage is marked as damaged and the process goes on. Guard returns the damage also when f
// ended well, because f may have read damaged data. It covers one goroutine: one that f starts needs its own Guard.
func (v *Vintage) Guard(f func() error) (err error) {
	if err := v.Damage(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if !v.isMappingFault(cause) {
				panic(cause)
			}
			err = v.MarkDamaged(fmt.Errorf("%w: it cannot be read any more: it was cut short, or the disk fails", ErrDamaged))
		}
	}()
	err = f()
	if damage := v.Damage(); damage != nil {
		return damage
	}
	return err
}

// isMappingFault reports whether a panic comes from a read of the mapping.
func (v *Vintage) isMappingFault(cause any) bool {
	err, ok := cause.(error)
	if !ok {
		return false
	}
	fault, ok := errors.AsType[interface {
		runtime.Error
		Addr() uintptr
	}](err)
	if !ok || len(v.data) == 0 {
		return false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(v.data)))
	return fault.Addr() >= first && fault.Addr()-first < uintptr(len(v.data))
}

// MarkDamaged marks the vintage as damaged for good. It returns the reason that was given first.
func (v *Vintage) MarkDamaged(reason error) error {
	v.damaged.CompareAndSwap(nil, &reason)
	return v.Damage()
}

// Damage is the reason why the vintage must not be read, nil while it may be.
func (v *Vintage) Damage() error {
	if reason := v.damaged.Load(); reason != nil {
		return *reason
	}
	return nil
}

// verifyChunk is the number of bytes that Verify reads before it checks the context.
const verifyChunk = 256 << 10

// Verify reads the whole file and checks every section. It reads the file and not the mapping: so a slow disk blocks no
// other reader, and a failing disk is an error. Damage that it finds is marked.
func (v *Vintage) Verify(ctx context.Context) error { return v.verify(ctx, func(time.Duration) {}) }

// VerifyGently is Verify beside queries: it leaves them three quarters of a core and of the disk.
func (v *Vintage) VerifyGently(ctx context.Context) error {
	const longest = 2 * time.Millisecond // on a slow disk the reads themselves leave the core idle
	return v.verify(ctx, func(worked time.Duration) { time.Sleep(min(3*worked, longest)) })
}

// verify checks all sections. It calls pause after each chunk with the time that the chunk took.
func (v *Vintage) verify(ctx context.Context, pause func(worked time.Duration)) error {
	err := v.verifyHeader()
	buf := make([]byte, verifyChunk)
	for id := secMeta; id < sectionEnd && err == nil; id++ {
		var sum uint32
		if sum, err = v.readChecksum(ctx, v.entries[id], buf, pause); err == nil && sum != v.entries[id].sum {
			err = fmt.Errorf("%w: section %d", ErrDamaged, id)
		}
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, os.ErrClosed):
		return errors.Join(err, v.Damage())
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: it was cut short", ErrDamaged)
	case !errors.Is(err, ErrDamaged):
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return v.MarkDamaged(err)
}

// verifyHeader checks that header and table are still those of the opened file.
func (v *Vintage) verifyHeader() error {
	head := make([]byte, headerLength(v.format))
	if _, err := v.file.ReadAt(head, 0); err != nil {
		return err
	}
	if digestOf(head) != v.digest {
		return fmt.Errorf("%w: header", ErrDamaged)
	}
	return nil
}

// digestOf is the digest of a vintage by its header and table, which hold the checksums of all sections.
func digestOf(head []byte) string {
	sum := sha256.Sum256(head)
	return hex.EncodeToString(sum[:8])
}

// readChecksum computes the checksum of a section and pauses between chunks.
func (v *Vintage) readChecksum(ctx context.Context, e sectionEntry, buf []byte, pause func(time.Duration)) (sum uint32, err error) {
	table := crcTable()
	for from := e.offset; from < e.offset+e.length; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		begun := time.Now()
		part := buf[:min(uint64(len(buf)), e.offset+e.length-from)]
		if _, err := v.file.ReadAt(part, int64(from)); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, table, part)
		from += uint64(len(part))
		pause(time.Since(begun))
	}
	return sum, nil
}
