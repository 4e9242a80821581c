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

// Meta is what a vintage says of itself.
type Meta struct {
	Millesime  string `json:"millesime"`
	Addresses  int    `json:"adresses"`
	Streets    int    `json:"voies"`
	Localities int    `json:"lieux_dits"`
	Communes   int    `json:"communes"`
	Synthetic  bool   `json:"synthetique,omitempty"`
}

// Vintage is an open file. It is safe for concurrent use until it is closed; what its methods return as bytes or
// columns lies in the mapping and must not be used after Close. Who reads it while the file may change under it does
// so in Guard.
type Vintage struct {
	Meta
	file     *os.File // for Verify
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

// Open maps a vintage after a look at its header and at its small sections. The file must not be changed while it is
// open: vintages are written beside each other and renamed into place.
func Open(path string) (*Vintage, error) { return openChecked(path, maxCheckedAtOpen) }

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

// Close unmaps the file. No reader may be left but a Verify, which ends.
func (v *Vintage) Close() error { return errors.Join(v.file.Close(), unix.Munmap(v.data)) }

// Size is the size of the file in bytes.
func (v *Vintage) Size() int64 { return v.info.Size() }

// Digest tells a vintage from every other. The same file has the same one wherever it is.
func (v *Vintage) Digest() string { return v.digest }

// Modified is when the file was written.
func (v *Vintage) Modified() time.Time { return v.info.ModTime() }

// Info is the file as it was when it was opened.
func (v *Vintage) Info() os.FileInfo { return v.info }

// Prefault asks the system to read the file ahead, so that the first questions find it in memory.
func (v *Vintage) Prefault() error { return unix.Madvise(v.data, unix.MADV_WILLNEED) }

// lay checks the file and lays the views over its sections.
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

// Guard runs f, which reads the vintage. Where a page of the file is not there any more, because it was cut short or the
// disk fails, f ends and the vintage is damaged for good; the process goes on. What f came to in a vintage that is
// damaged by then is not to be relied on: Guard returns the damage. It holds for one goroutine; one that f starts needs
// its own.
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

// isMappingFault says whether a panic is that of a read of the mapping.
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

// MarkDamaged says that the vintage must not be asked any more, and why. It returns what was said first.
func (v *Vintage) MarkDamaged(reason error) error {
	v.damaged.CompareAndSwap(nil, &reason)
	return v.Damage()
}

// Damage is why the vintage must not be asked any more; nil while it can be.
func (v *Vintage) Damage() error {
	if reason := v.damaged.Load(); reason != nil {
		return *reason
	}
	return nil
}

// verifyChunk is how much of a file is checked between two looks at the context.
const verifyChunk = 256 << 10

// Verify reads the whole file and checks every section. It reads the file and not the mapping, so that a slow disk
// stops no other reader, and one that fails is an error. What it finds is damage for good.
func (v *Vintage) Verify(ctx context.Context) error { return v.verify(ctx, func(time.Duration) {}) }

// VerifyGently is Verify beside questions: it leaves them three quarters of a core and of the disk.
func (v *Vintage) VerifyGently(ctx context.Context) error {
	const longest = 2 * time.Millisecond // a disk that is slow rests while it is waited for
	return v.verify(ctx, func(worked time.Duration) { time.Sleep(min(3*worked, longest)) })
}

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

// verifyHeader checks that the header and the table of sections are those that were opened.
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

// digestOf is the digest of a vintage, by its header and table of sections.
func digestOf(head []byte) string {
	sum := sha256.Sum256(head)
	return hex.EncodeToString(sum[:8])
}

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
