package commune

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

const postcodeLength = 5

// Table finds communes by code, postcode, parent, position and name. It is safe for concurrent use.
type Table struct {
	communes        []Commune
	byCode          map[string]int32
	children        []int32         // indexes of the communes with a parent, ordered by parent
	postcodeEntries []postcodeEntry // ordered by postcode, then by commune
	names           func() *nameIndex
}

// postcodeEntry is one postcode of one commune.
type postcodeEntry struct {
	code    [postcodeLength]byte
	commune int32
}

// Load returns the program's table. The first call decodes it.
var Load = sync.OnceValues(func() (*Table, error) { return decode(packed) })

// buildIndexes builds the lookups of a table whose communes are complete.
func (t *Table) buildIndexes() {
	t.byCode = make(map[string]int32, len(t.communes))
	for i := range t.communes {
		c := &t.communes[i]
		if _, isDelegated := t.byCode[c.Code]; !isDelegated {
			t.byCode[c.Code] = int32(i)
		}
		if c.Parent != "" {
			t.children = append(t.children, int32(i))
		}
		for p := c.postcodes; len(p) >= postcodeLength; p = p[postcodeLength:] {
			t.postcodeEntries = append(t.postcodeEntries, postcodeEntry{[postcodeLength]byte([]byte(p[:postcodeLength])), int32(i)})
		}
	}
	slices.SortStableFunc(t.children, func(a, b int32) int {
		return cmp.Compare(t.communes[a].Parent, t.communes[b].Parent)
	})
	slices.SortStableFunc(t.postcodeEntries, func(a, b postcodeEntry) int { return slices.Compare(a.code[:], b.code[:]) })
	t.children, t.postcodeEntries = slices.Clip(t.children), slices.Clip(t.postcodeEntries)
	t.names = sync.OnceValue(func() *nameIndex { return newNameIndex(t) })
}

// Len is the number of entries.
func (t *Table) Len() int { return len(t.communes) }

// ByCode returns the commune with an INSEE code. If a current and a delegated commune share the code, it is the
// current one.
func (t *Table) ByCode(code string) (*Commune, bool) {
	i, ok := t.indexOf(code)
	if !ok {
		return nil, false
	}
	return &t.communes[i], true
}

// indexOf is the index of the commune with a code.
func (t *Table) indexOf(code string) (int, bool) {
	i, ok := t.byCode[code]
	return int(i), ok
}

// ByPostcode returns the communes with a postcode, by code.
func (t *Table) ByPostcode(postcode string) (found []*Commune) {
	for _, p := range t.findPostcode(postcode) {
		found = append(found, &t.communes[p.commune])
	}
	return found
}

// findPostcode returns the entries of a postcode, by code of the commune.
func (t *Table) findPostcode(postcode string) []postcodeEntry {
	from := sort.Search(len(t.postcodeEntries), func(i int) bool { return string(t.postcodeEntries[i].code[:]) >= postcode })
	to := sort.Search(len(t.postcodeEntries), func(i int) bool { return string(t.postcodeEntries[i].code[:]) > postcode })
	return t.postcodeEntries[from:to]
}

// Parent returns the commune that c is part of.
func (t *Table) Parent(c *Commune) (*Commune, bool) {
	if c.Parent == "" {
		return nil, false
	}
	return t.ByCode(c.Parent)
}

// Children returns the delegated and associated communes and the arrondissements of a commune, by code.
func (t *Table) Children(code string) (found []*Commune) {
	from, _ := slices.BinarySearchFunc(t.children, code, func(i int32, code string) int { return strings.Compare(t.communes[i].Parent, code) })
	for _, i := range t.children[from:] {
		if t.communes[i].Parent != code {
			break
		}
		found = append(found, &t.communes[i])
	}
	return found
}

// Around returns the communes, former ones included, whose bounds hold a position, by code. Bounds of neighbours
// overlap.
func (t *Table) Around(lon, lat float64) (found []*Commune) {
	for i := range t.communes {
		c := &t.communes[i]
		if b := &c.Bounds; b.West <= lon && lon <= b.East && b.South <= lat && lat <= b.North && c.Located() {
			found = append(found, c)
		}
	}
	return found
}

// packed is the table as gzip. Each line is an entry with tabs between code, name, kind, parent, population, postcodes,
// centre (thousandths of a degree) and bounds (thousandths of a degree from the centre, outwards). Unknown numbers are
// empty.
//
//go:embed communes.tsv.gz
var packed []byte

const milli = 1000

func decode(packed []byte) (*Table, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the communes: %w", err)
	}
	var b strings.Builder
	b.Grow(unpackedSize(packed))
	if _, err := io.Copy(&b, r); err != nil {
		return nil, fmt.Errorf("unpack the communes: %w", err)
	}
	text := b.String()
	t := &Table{communes: make([]Commune, 0, strings.Count(text, "\n"))}
	for line := range strings.Lines(text) {
		c, err := decodeLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("communes, %q: %w", line, err)
		}
		t.communes = append(t.communes, c)
	}
	t.buildIndexes()
	return t, nil
}

// unpackedSize reads the size of the content from the end of a gzip file, so that the text is allocated once.
func unpackedSize(packed []byte) int {
	return int(min(binary.LittleEndian.Uint32(packed[len(packed)-4:]), 1<<24))
}

// decodeLine decodes one entry. Its strings share the memory of the line.
func decodeLine(line string) (c Commune, err error) {
	numbers := [8]int{} // kind, population, centre, bounds
	at := 0
	number := func(s string) {
		if n, bad := strconv.Atoi(s); s != "" {
			numbers[at] = n
			if bad != nil {
				err = bad
			}
		}
		at++
	}
	for column := 0; column < 12; column++ {
		value, rest, _ := strings.Cut(line, "\t")
		line = rest
		switch column {
		case 0:
			c.Code = value
		case 1:
			c.Name = value
		case 3:
			c.Parent = value
		case 5:
			c.postcodes = value
		default:
			number(value)
		}
	}
	c.Kind, c.Population = Kind(numbers[0]), uint32(numbers[1])
	lon, lat := numbers[2], numbers[3]
	c.Lon, c.Lat = toDegrees(lon), toDegrees(lat)
	c.Bounds = Bounds{toDegrees(lon - numbers[4]), toDegrees(lat - numbers[5]), toDegrees(lon + numbers[6]), toDegrees(lat + numbers[7])}
	return c, err
}

func toDegrees(thousandths int) float64 { return float64(thousandths) / milli }
