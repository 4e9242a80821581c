package vintage

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"lieudit/queries/mappedfile"
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
	*mappedfile.File
	sections [sectionEnd][]byte

	terms       texts
	termHeads   func() []uint32 // see headsOf
	highest     func() []uint16 // see highestNumbers
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
// open: new vintages are written next to it and renamed into place.
func Open(path string) (*Vintage, error) { return openFormat(path, fileFormat()) }

// openFormat opens a file of a format.
func openFormat(path string, format mappedfile.Format) (*Vintage, error) {
	file, err := mappedfile.Open(path, format)
	if err != nil {
		return nil, err
	}
	v := &Vintage{File: file}
	if err := v.Guard(v.loadSections); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return v, nil
}

// loadSections reads the metadata and slices the sections.
func (v *Vintage) loadSections() error {
	for id := range v.sections {
		v.sections[id] = v.Section(section(id))
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
	v.highest = sync.OnceValue(v.highestNumbers)
	v.termHeads = sync.OnceValue(func() []uint32 { return headsOf(v.terms) })
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
