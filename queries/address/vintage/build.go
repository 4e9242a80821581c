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
	if err := b.run(ctx, dir, rows); err != nil {
		return s, err
	}
	whole := filepath.Join(dir, "whole")
	if err := b.w.assemble(whole); err != nil {
		return s, fmt.Errorf("write the vintage: %w", err)
	}
	info, err := os.Stat(whole)
	if err != nil {
		return s, err
	}
	b.summary.Bytes = info.Size()
	return b.summary, rename(whole, out)
}

// rename puts the finished file into place and makes the name durable.
func rename(whole, out string) error {
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
	w       *sectionWriter
	summary Summary

	names     *namer
	places    []Place
	postcodes map[uint32][]uint32 // the communes of each
	streets   []uint32            // the name of each
	keys      []string            // the key of each
	reps      map[string]uint16
	positions map[string]byte
	owners    []owned // streets that were given a UUID
	aliases   []alias
	prior     *lineage
	facets    uint32

	space         uuid.UUID
	streetUUIDs   []uint64 // the first half of each street's
	uuids         *keyFile // the first half of each row's
	formers       *keyFile // the first half of each that a row has no more
	streetFormers []keyed  // the same of streets
	givenFormers  []givenFormer
}

// givenFormer is a UUID that a row or street has no more, and that is not made of the id it has now.
type givenFormer struct {
	uuid   uuid.UUID
	entity uint32
	street bool // entity is the ordinal of a street
}

// owned is a street, by its ordinal, and the UUID that it was given.
type owned struct {
	entity   uint32
	uuid     uuid.UUID
	invented bool
}

// alias is an id that cannot be told from the street and the number, or one of an earlier vintage.
type alias struct {
	id     string
	entity uint32 // of a street: its ordinal, counted from the rows at the end
	street bool
	odd    bool // it is the row's own id
}

func newBuilder(o Options, w *sectionWriter) *builder {
	return &builder{Options: o, w: w, names: newNamer(w), space: space(), postcodes: map[uint32][]uint32{}, reps: map[string]uint16{},
		positions: map[string]byte{}}
}

func (b *builder) run(ctx context.Context, dir string, rows iter.Seq2[ban.Row, error]) error {
	file, err := os.Create(filepath.Join(dir, "rows"))
	if err != nil {
		return err
	}
	defer file.Close()
	if b.uuids, err = newKeyFile(filepath.Join(dir, "uuids")); err != nil {
		return err
	}
	defer b.uuids.close()
	if b.formers, err = newKeyFile(filepath.Join(dir, "formers")); err != nil {
		return err
	}
	defer b.formers.close()
	s := newSpill(file)
	if err := b.fill(ctx, s, rows); err != nil {
		return err
	}
	err = b.inheriting(func() error {
		if b.Previous != nil {
			b.prior = newLineage(b.Previous)
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
	b.w.bytes(secMeta, meta)
	return err
}

// fill spills all rows, while they are read ahead.
func (b *builder) fill(ctx context.Context, s *spill, rows iter.Seq2[ban.Row, error]) error {
	n := 0
	err := ahead(ctx, rows, 256, func(batch []ban.Row) error {
		for i := range batch {
			if err := s.add(&batch[i]); err != nil {
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
func (b *builder) writeCommunes(ctx context.Context, s *spill) error {
	codes := byImportance(s.rows)
	err := ahead(ctx, s.communes(codes), 1, func(batch []sorted) error {
		return b.inheriting(func() error {
			for i := range batch {
				b.writeCommune(uint32(b.summary.Communes), &batch[i])
				b.summary.Communes++
			}
			b.Progress("build", b.summary.Addresses, 0)
			return nil
		})
	})
	b.closeRecords()
	return errors.Join(err, b.w.failed())
}

// inheriting does what may read the vintage before.
func (b *builder) inheriting(f func() error) error {
	if b.Previous == nil {
		return f()
	}
	if err := b.Previous.Guard(f); err != nil {
		return fmt.Errorf("carry over the id_ban of the vintage before: %w", err)
	}
	return nil
}

// closeRecords ends communes and streets with a record that says where the last one ends.
func (b *builder) closeRecords() {
	s := len(b.streets)
	b.w.u32(secCommunes, 0, 0, none, uint32(s), 0, 0, 0, 0, 0, b.w.length(secCommunePostcodes)/4)
	b.w.u32(secStreets, none, none, uint32(b.summary.Addresses), b.facets, b.w.length(secParcels),
		b.w.length(secStreetKeys), none, 0, 0, 0, 0, 0, 0)
}
