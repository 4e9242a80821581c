package accuracy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"lieudit/cmd/bench/measure"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/synthetic"
	"lieudit/queries/address/vintage"
)

// OpenVintage opens the vintage of the options. It builds the vintage first unless Options.Vintage names an existing file.
func OpenVintage(ctx context.Context, dir string, communes *commune.Table, o Options, out measure.Output) (*vintage.Vintage, error) {
	path := o.Vintage
	if path == "" {
		path = filepath.Join(dir, "bench.vintage")
	}
	contents, err := describeContents(o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := buildVintage(ctx, path, contents, communes, o, out); err != nil {
			return nil, err
		}
	}
	v, err := vintage.Open(path)
	if err != nil {
		return nil, err
	}
	if len(o.Files) > 0 && v.Millesime != contents {
		return nil, errors.Join(fmt.Errorf("%s holds %q and not %q; remove it, or leave --file out to use it as it is", path, v.Millesime, contents), v.Close())
	}
	return v, nil
}

// describeContents describes the contents of a vintage: the files with their sizes and the number and seed of the invented rows. It becomes the
// vintage's millésime, so that a file of an earlier run is not mistaken for one with other contents.
func describeContents(o Options) (string, error) {
	var parts []string
	for _, name := range o.Files {
		info, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		parts = append(parts, fmt.Sprintf("%s (%d bytes)", filepath.Base(name), info.Size()))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d invented rows of seed %d", o.Invented, o.Seed)), ", "), nil
}

// buildVintage builds a vintage of the files and the invented rows.
func buildVintage(ctx context.Context, path, contents string, communes *commune.Table, o Options, out measure.Output) (err error) {
	sources, err := vintages.OpenSources(ctx, o.Files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sources.Close()) }()
	rows := iter.Seq2[ban.Row, error](sources.Rows)
	if o.Invented > 0 {
		rows = addInvented(rows, synthetic.Rows(ctx, communes, synthetic.Options{Addresses: o.Invented, Seed: o.Seed}))
	}
	_, err = vintage.Build(ctx, path, rows, vintage.Options{
		Millesime: contents,
		Progress:  func(stage string, done, _ int) { out.Progress(stage, done, 0) },
	})
	return err
}

// addInvented yields the real rows and then the invented ones, up to the first error. It omits invented streets that have the id of a real one:
// a vintage keeps one row of each id, so an expected real row could be missing.
func addInvented(real, invented iter.Seq2[ban.Row, error]) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		streets := map[string]bool{} // of the real rows, by id
		for row, err := range real {
			if !yield(row, err) || err != nil {
				return
			}
			streets[streetID(row.ID)] = true
		}
		for row, err := range invented {
			if !streets[streetID(row.ID)] && !yield(row, err) || err != nil {
				return
			}
		}
	}
}
