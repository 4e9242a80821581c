package vintage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
	"lieudit/queries/mappedfile"
)

// Options are the facts that a build cannot learn from the rows. The zero value is valid.
type Options struct {
	Millesime string
	Synthetic bool
	Previous  *Vintage // the vintage whose id_ban and ids the new one inherits
	// Progress reports how many items of a stage are done; total is 0 while unknown. Calls do not overlap.
	Progress func(stage string, done, total int)
}

// Summary describes what a build wrote.
type Summary struct {
	Meta
	Bytes      int64
	Duplicates int // rows left out because another row had their id
	Inherited  int // rows whose predecessor had another id
}

// ErrEmpty says that the files held no usable row.
var ErrEmpty = errors.New("no address in the files")

// Build writes a vintage of the rows to a file. The file appears when it is complete, or not at all. Temporary files
// lie in a folder next to it and are removed.
func Build(ctx context.Context, out string, rows iter.Seq2[ban.Row, error], o Options) (s Summary, err error) {
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	var b *builder
	size, err := mappedfile.Build(out, fileFormat(), func(dir string, w *mappedfile.Writer) error {
		b = newBuilder(o, w)
		return b.build(ctx, dir, rows)
	})
	if err != nil {
		return s, err
	}
	b.summary.Bytes = size
	return b.summary, nil
}

// builder is the state of a build.
type builder struct {
	Options
	out     *mappedfile.Writer
	summary Summary

	names             *nameTable
	places            []Place
	postcodes         map[uint32][]uint32 // communes by postcode
	streetNames       []uint32            // by ordinal
	streetKeys        []string            // by ordinal
	reps              map[string]uint16
	positions         map[string]byte
	storedStreetUUIDs []storedStreetUUID // streets whose UUID is not generated from their key
	aliases           []alias
	predecessors      *predecessorIndex
	facetCount        uint32

	namespace     uuid.UUID
	streetUUIDs   []uint64      // first halves, by ordinal
	rowUUIDs      *keyFile      // first halves
	rowFormers    *keyFile      // first halves of the replaced UUIDs of rows
	streetFormers []keyedEntity // the same for streets
	storedFormers []storedFormer
}

// storedFormer is a replaced UUID that the entity's present id does not generate.
type storedFormer struct {
	uuid     uuid.UUID
	entity   uint32
	isStreet bool // entity is the ordinal of a street
}

// storedStreetUUID is the UUID of a street that its key does not generate.
type storedStreetUUID struct {
	street      uint32
	uuid        uuid.UUID
	isGenerated bool
}

// alias is an irregular id, or an id of an earlier vintage.
type alias struct {
	id       string
	entity   uint32 // of a street: its ordinal, until the number of rows is known
	isStreet bool
	isOwnID  bool // it is the row's own id
}

func newBuilder(o Options, w *mappedfile.Writer) *builder {
	return &builder{Options: o, out: w, names: newNameTable(w), namespace: uuidNamespace(), postcodes: map[uint32][]uint32{}, reps: map[string]uint16{},
		positions: map[string]byte{}}
}

// build reads the rows, writes the communes one by one, and then the indexes over all of them. The meta section comes
// last, because it holds the counts.
func (b *builder) build(ctx context.Context, dir string, rows iter.Seq2[ban.Row, error]) error {
	file, err := os.Create(filepath.Join(dir, "rows"))
	if err != nil {
		return err
	}
	defer file.Close()
	if b.rowUUIDs, err = newKeyFile(filepath.Join(dir, "uuids")); err != nil {
		return err
	}
	defer b.rowUUIDs.close()
	if b.rowFormers, err = newKeyFile(filepath.Join(dir, "formers")); err != nil {
		return err
	}
	defer b.rowFormers.close()
	s := newRowSpill(file)
	if err := b.spillRows(ctx, s, rows); err != nil {
		return err
	}
	err = b.guardPrevious(func() error {
		if b.Previous != nil {
			b.predecessors = newPredecessorIndex(b.Previous)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.writeCommunes(ctx, s); err != nil {
		return err
	}
	if err := b.writeIndex(ctx); err != nil {
		return err
	}
	b.summary.Meta.Millesime, b.summary.Meta.Synthetic = b.Millesime, b.Synthetic
	meta, err := json.Marshal(b.summary.Meta)
	b.out.Append(secMeta, meta)
	return err
}

// spillRows writes all rows to the spill file while the next ones are read.
func (b *builder) spillRows(ctx context.Context, s *rowSpill, rows iter.Seq2[ban.Row, error]) error {
	n := 0
	err := consumeBatches(ctx, rows, 256, func(batch []ban.Row) error {
		for i := range batch {
			if err := s.append(&batch[i]); err != nil {
				return fmt.Errorf("keep the rows: %w", err)
			}
		}
		n += len(batch)
		b.Progress("read", n, 0)
		return nil
	})
	if err == nil && n == 0 {
		return ErrEmpty
	}
	return errors.Join(err, s.w.Flush())
}

// byImportance returns the communes' codes, those with most rows first.
func byImportance(rows map[string]int) []string {
	codes := make([]string, 0, len(rows))
	for code := range rows {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(x, y string) int { return cmp.Or(cmp.Compare(rows[y], rows[x]), cmp.Compare(x, y)) })
	return codes
}

// writeCommunes writes one commune after the other while the next ones are read and grouped.
func (b *builder) writeCommunes(ctx context.Context, s *rowSpill) error {
	codes := byImportance(s.rowCounts)
	err := consumeBatches(ctx, s.groupCommunes(codes), 1, func(batch []communeRows) error {
		return b.guardPrevious(func() error {
			for i := range batch {
				b.writeCommune(uint32(b.summary.Communes), &batch[i])
				b.summary.Communes++
			}
			b.Progress("build", b.summary.Addresses, 0)
			return nil
		})
	})
	b.writeEndRecords()
	return errors.Join(err, b.out.Err())
}

// guardPrevious runs f, which may read the previous vintage.
func (b *builder) guardPrevious(f func() error) error {
	if b.Previous == nil {
		return f()
	}
	if err := b.Previous.Guard(f); err != nil {
		return fmt.Errorf("carry over the id_ban of the vintage before: %w", err)
	}
	return nil
}

// writeEndRecords writes the records after the last commune and the last street, which hold the end of the last ranges.
func (b *builder) writeEndRecords() {
	s := len(b.streetNames)
	b.out.AppendU32(secCommunes, 0, 0, none, uint32(s), 0, 0, 0, 0, 0, uint32(b.out.Length(secCommunePostcodes)/4))
	b.out.AppendU32(secStreets, none, none, uint32(b.summary.Addresses), b.facetCount, uint32(b.out.Length(secParcels)),
		uint32(b.out.Length(secStreetKeys)), none, 0, 0, 0, 0, 0, 0)
}

// nameTable numbers names and terms. Names are written to the file when they first come. Terms are numbered in the
// order they come; sortTerms renumbers them in sorted order.
type nameTable struct {
	w            *mappedfile.Writer
	ordinals     map[string]uint32
	textLength   uint32
	termOrdinals map[string]uint32 // by first occurrence
	firstTerm    []uint32          // start of each name's terms in allTerms
	allTerms     []uint32          // the terms of all names
}

func newNameTable(w *mappedfile.Writer) *nameTable {
	w.AppendU32(secNameFirst, 0)
	return &nameTable{w: w, ordinals: map[string]uint32{}, termOrdinals: map[string]uint32{}, firstTerm: []uint32{0}}
}

// intern is the ordinal of a name. It writes a new name to the file.
func (n *nameTable) intern(name string) uint32 {
	if at, ok := n.ordinals[name]; ok {
		return at
	}
	at := uint32(len(n.ordinals))
	n.ordinals[name] = at
	n.w.Append(secNameText, []byte(name))
	n.textLength += uint32(len(name))
	n.w.AppendU32(secNameFirst, n.textLength)
	for _, t := range text.Terms(name) {
		id, ok := n.termOrdinals[t.Text]
		if !ok {
			id = uint32(len(n.termOrdinals))
			n.termOrdinals[t.Text] = id
		}
		n.allTerms = append(n.allTerms, id)
	}
	n.firstTerm = append(n.firstTerm, uint32(len(n.allTerms)))
	return at
}

// sortTerms renumbers the terms in sorted order and returns them.
func (n *nameTable) sortTerms() []string {
	sorted := make([]string, 0, len(n.termOrdinals))
	for t := range n.termOrdinals {
		sorted = append(sorted, t)
	}
	slices.Sort(sorted)
	renumbered := make([]uint32, len(sorted))
	for i, t := range sorted {
		renumbered[n.termOrdinals[t]] = uint32(i)
	}
	for i, t := range n.allTerms {
		n.allTerms[i] = renumbered[t]
	}
	n.termOrdinals, n.ordinals = nil, nil
	return sorted
}

// termsOf returns the terms of a name, after sortTerms.
func (n *nameTable) termsOf(name uint32) []uint32 {
	return n.allTerms[n.firstTerm[name]:n.firstTerm[name+1]]
}
