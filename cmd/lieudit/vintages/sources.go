package vintages

import (
	"context"
	"iter"

	"lieudit/cmd/lieudit/releases"
	"lieudit/queries/address/ban"
)

// Sources are the open files and URLs that an import of addresses reads, in order and once: CSV files, or one finished
// vintage.
type Sources struct {
	*releases.Sources
	Report ban.Report // rows read, and those left out with their reasons
}

// OpenSources opens all sources, so that a missing one is noticed before anything is read. The context bounds reading too.
func OpenSources(ctx context.Context, names []string) (*Sources, error) {
	files, err := releases.OpenSources(ctx, names)
	if err != nil {
		return nil, err
	}
	return &Sources{Sources: files}, nil
}

// Rows yields the rows of all sources in order. Bad rows are left out and counted in Report; an error of reading is yielded
// and ends the rows. It can be run once.
func (s *Sources) Rows(yield func(ban.Row, error) bool) {
	for _, f := range s.Files {
		for row, err := range ban.Read(f, f.Name, &s.Report) {
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// PeekRows reads the first row and returns an iterator over all rows, that one included. So Report reports whether the
// addresses are invented before a vintage is built from them. The caller calls stop when it needs no more rows.
func (s *Sources) PeekRows() (rows iter.Seq2[ban.Row, error], stop func()) {
	next, stop := iter.Pull2(s.Rows)
	row, err, ok := next()
	return func(yield func(ban.Row, error) bool) {
		for ; ok && yield(row, err); row, err, ok = next() {
		}
	}, stop
}
