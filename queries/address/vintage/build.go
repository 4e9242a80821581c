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
)

// Options say what a build cannot learn from the rows. All may be left out.
type Options struct {
	Millesime string
	Synthetic bool
	Previous  *Vintage // whose id_ban and old ids live on
	// Progress is told how far a stage has come; total is 0 while unknown. It is called from one goroutine at a time.
	Progress func(stage string, done, total int)
}

// Summary tells what a build made.
type Summary struct {
	Meta
	Bytes      int64
	Duplicates int // rows left out because another had their id
	Inherited  int // rows that kept the id_ban of an earlier vintage under another id
}

// ErrEmpty: the files held no row that could be used.
var ErrEmpty = errors.New("no address in the files")

// Build writes a vintage of the rows to a file, which appears whole or not at all. The same rows make the same bytes,
// in whatever order they come. Rows wait on disk beside the file; memory holds names, streets and one commune.
func Build(ctx context.Context, out string, rows iter.Seq2[ban.Row, error], o Options) (s Summary, err error) {
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), ".vintage-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sink, err := newSectionWriter(dir)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, sink.close()) }()
	b := newBuilder(o, sink)
	if err := b.build(ctx, dir, rows); err != nil {
		return s, err
	}
	whole := filepath.Join(dir, "whole")
	if err := b.out.assemble(whole); err != nil {
		return s, fmt.Errorf("write the vintage: %w", err)
	}
	info, err := os.Stat(whole)
	if err != nil {
		return s, err
	}
	b.summary.Bytes = info.Size()
	return b.summary, renameDurably(whole, out)
}

// renameDurably puts the finished file into place and makes the name durable.
func renameDurably(whole, out string) error {
	if err := os.Rename(whole, out); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(out))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// builder holds what a build remembers of the whole.
type builder struct {
	Options
	out     *sectionWriter
	summary Summary

	names             *nameTable
	places            []Place
	postcodes         map[uint32][]uint32 // the communes of each
	streetNames       []uint32            // the name of each
	streetKeys        []string            // the key of each
	reps              map[string]uint16
	positions         map[string]byte
	storedStreetUUIDs []storedStreetUUID // streets that were given a UUID
	aliases           []alias
	predecessors      *predecessorIndex
	facetCount        uint32

	namespace     uuid.UUID
	streetUUIDs   []uint64      // the first half of each street's
	rowUUIDs      *keyFile      // the first half of each row's
	rowFormers    *keyFile      // the first half of each that a row has no more
	streetFormers []keyedEntity // the same of streets
	storedFormers []storedFormer
}

// storedFormer is a UUID that a row or street has no more, and that is not made of the id it has now.
type storedFormer struct {
	uuid     uuid.UUID
	entity   uint32
	isStreet bool // entity is the ordinal of a street
}

// storedStreetUUID is a street, by its ordinal, and the UUID that it was given.
type storedStreetUUID struct {
	street      uint32
	uuid        uuid.UUID
	isGenerated bool
}

// alias is an id that cannot be told from the street and the number, or one of an earlier vintage.
type alias struct {
	id       string
	entity   uint32 // of a street: its ordinal, counted from the rows at the end
	isStreet bool
	isOwnID  bool // it is the row's own id
}

func newBuilder(o Options, w *sectionWriter) *builder {
	return &builder{Options: o, out: w, names: newNameTable(w), namespace: uuidNamespace(), postcodes: map[uint32][]uint32{}, reps: map[string]uint16{},
		positions: map[string]byte{}}
}

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
	b.out.appendBytes(secMeta, meta)
	return err
}

// spillRows spills all rows, while they are read ahead.
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

// byImportance are the communes' codes, those with most rows first.
func byImportance(rows map[string]int) []string {
	codes := make([]string, 0, len(rows))
	for code := range rows {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(x, y string) int { return cmp.Or(cmp.Compare(rows[y], rows[x]), cmp.Compare(x, y)) })
	return codes
}

// writeCommunes writes one commune after the other, while the next ones are sorted.
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
	return errors.Join(err, b.out.firstError())
}

// guardPrevious does what may read the vintage before.
func (b *builder) guardPrevious(f func() error) error {
	if b.Previous == nil {
		return f()
	}
	if err := b.Previous.Guard(f); err != nil {
		return fmt.Errorf("carry over the id_ban of the vintage before: %w", err)
	}
	return nil
}

// writeEndRecords ends communes and streets with a record that says where the last one ends.
func (b *builder) writeEndRecords() {
	s := len(b.streetNames)
	b.out.appendU32(secCommunes, 0, 0, none, uint32(s), 0, 0, 0, 0, 0, b.out.length(secCommunePostcodes)/4)
	b.out.appendU32(secStreets, none, none, uint32(b.summary.Addresses), b.facetCount, b.out.length(secParcels),
		b.out.length(secStreetKeys), none, 0, 0, 0, 0, 0, 0)
}

// nameTable gives names and terms their ordinals. Names are written as they come; terms are numbered at the end, in order.
type nameTable struct {
	w            *sectionWriter
	ordinals     map[string]uint32
	textLength   uint32
	termOrdinals map[string]uint32 // in the order they came
	firstTerm    []uint32          // where each name's terms begin
	allTerms     []uint32          // the terms of all names
}

func newNameTable(w *sectionWriter) *nameTable {
	w.appendU32(secNameFirst, 0)
	return &nameTable{w: w, ordinals: map[string]uint32{}, termOrdinals: map[string]uint32{}, firstTerm: []uint32{0}}
}

// intern is the ordinal of a name.
func (n *nameTable) intern(name string) uint32 {
	if at, ok := n.ordinals[name]; ok {
		return at
	}
	at := uint32(len(n.ordinals))
	n.ordinals[name] = at
	n.w.appendBytes(secNameText, []byte(name))
	n.textLength += uint32(len(name))
	n.w.appendU32(secNameFirst, n.textLength)
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

// sortTerms numbers the terms in their order and gives them back sorted.
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

// termsOf are the terms of a name, after settle.
func (n *nameTable) termsOf(name uint32) []uint32 {
	return n.allTerms[n.firstTerm[name]:n.firstTerm[name+1]]
}
