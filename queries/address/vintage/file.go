package vintage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

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
	file    *os.File // for Verify
	info    os.FileInfo
	data    []byte
	format  uint32
	table   [sectionEnd]entry
	parts   [sectionEnd][]byte
	digest  string
	damaged atomic.Pointer[error]

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
	uuids       records
	formers     records
}

// Open maps a vintage after a look at its header and at its small sections. The file must not be changed while it is
// open: vintages are written beside each other and renamed into place.
func Open(path string) (*Vintage, error) { return open(path, smallSection) }

func open(path string, small int) (v *Vintage, err error) {
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
	if err := v.Guard(func() error { return v.lay(small) }); err != nil {
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
func (v *Vintage) lay(small int) (err error) {
	if v.format, v.table, err = cut(v.data); err != nil {
		return err
	}
	v.digest = digestOf(v.data[:headLength(v.format)])
	for id, e := range v.table {
		part := v.data[e.offset : e.offset+e.length : e.offset+e.length]
		if len(part) <= small && checksum(part) != e.sum {
			return fmt.Errorf("%w: section %d", ErrDamaged, id)
		}
		v.parts[id] = part
	}
	if err := json.Unmarshal(v.parts[secMeta], &v.Meta); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	v.layViews()
	if v.Addresses != len(v.parts[secNumbers])/2 || v.Communes != v.communes.len()-1 || v.streets.len() < 1 {
		return fmt.Errorf("%w: its counts contradict each other", ErrDamaged)
	}
	return nil
}

func (v *Vintage) layViews() {
	p := &v.parts
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
	v.uuids = records{p[secUUIDs], 16}
	v.formers = records{p[secFormerUUIDs], 16}
	v.aliases = texts{Column(p[secAliasFirst]), p[secAliasText]}
}
