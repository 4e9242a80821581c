// Package vintages imports vintages of the address base into a data folder. A vintage is one release of the Base Adresse
// Nationale (BAN), built into an index file; its millésime is the date of the data. The package tells package releases what
// is particular to vintages, and builds one from the files of the base. An id_ban identifies an address for customers
// across vintages, so an import carries them over or says why it cannot.
//
//	Sources ──> Import.Run ──> releases.Folder.Add ──> vintage.Build, with the vintage before
package vintages

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"time"

	"lieudit/cmd/lieudit/releases"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/vintage"
	"lieudit/queries/mappedfile"
)

// DemoMillesime replaces the date in the vintage of invented addresses that a service builds for itself.
const DemoMillesime = releases.DemoDate

// Folder is the folder of vintages in a data folder.
type Folder = releases.Folder[*vintage.Vintage]

// FolderIn returns the folder of vintages in a data folder. It need not exist yet.
func FolderIn(data string) Folder {
	return releases.FolderIn(data, releases.Kind[*vintage.Vintage]{
		Noun: "vintage", Contents: "addresses",
		FolderName: "vintages", Extension: ".vintage", LastRealFile: "last-vintage",
		RepairAdvice: "put it back from a backup, or begin anew (the ids it gave are lost): lieudit ban import --fresh FILE",
		HasMagic:     vintage.HasMagic,
		Versions:     vintage.FormatVersions,
		Open:         vintage.Open,
		File:         func(v *vintage.Vintage) *mappedfile.File { return v.File },
		Describe:     func(v *vintage.Vintage) releases.Label { return LabelOf(v.Meta) },
	})
}

// LabelOf returns the label of a vintage.
func LabelOf(m vintage.Meta) releases.Label {
	return releases.Label{Date: m.Millesime, IsSynthetic: m.Synthetic}
}

// Import is one import into a folder: either of CSV files, from which it builds a vintage, or of one finished vintage. The
// caller closes Sources.
type Import struct {
	Folder
	Sources   *Sources
	Millesime string                              // date of the data, as 2026-11-21; a finished vintage brings its own
	SHA256    string                              // of a finished vintage, in hexadecimal; "" for CSV files
	Fresh     bool                                // carry no id_ban over; then the current vintage need not be readable
	Progress  func(stage string, done, total int) // called while rows are read and the file is built; may be nil
	Now       time.Time                           // becomes part of the new vintage's name
}

// UnreadableCurrentError means that the current vintage cannot be read, so that its id_ban cannot be carried over. An
// import without Fresh refuses rather than lose them.
type UnreadableCurrentError struct{ Err error }

func (e *UnreadableCurrentError) Error() string {
	return fmt.Sprintf("the current vintage cannot be read, so no id_ban can be carried over from it: %v", e.Err)
}

func (e *UnreadableCurrentError) Unwrap() error { return e.Err }

// Run makes a vintage of the sources the current one: it builds one from CSV files, or copies a finished one. It does not
// wait for a running service; AwaitServed does. Its errors are those of Folder.Add and of reading the sources,
// *UnreadableCurrentError, and those of releases about a finished vintage.
func (i Import) Run(ctx context.Context) (name string, s vintage.Summary, err error) {
	isFinished, err := i.IsFinished(i.Sources.Sources, i.SHA256)
	if err != nil {
		return "", s, err
	}
	build := i.copyFinished
	if !isFinished {
		rows, stop := i.Sources.PeekRows()
		defer stop()
		build = func(path, current string) (vintage.Summary, error) { return i.buildVintage(ctx, path, current, rows) }
	}
	name, err = i.Add(ctx, i.Now, func(path, current string) (releases.Label, error) {
		s, err = build(path, current)
		return LabelOf(s.Meta), err
	})
	return name, s, err
}

// copyFinished copies the finished vintage to a path and verifies it.
func (i Import) copyFinished(path, _ string) (s vintage.Summary, err error) {
	v, err := i.CopyFinished(i.Sources.Sources, path, i.SHA256)
	if err != nil {
		return s, err
	}
	return vintage.Summary{Meta: v.Meta, Bytes: v.Size()}, v.Close()
}

// buildVintage builds a vintage of the rows into a path. It carries the id_ban of the current one over.
func (i Import) buildVintage(ctx context.Context, path, current string, rows iter.Seq2[ban.Row, error]) (s vintage.Summary, err error) {
	synthetic := i.Sources.Report.Synthetic > 0
	previous, err := i.openPrevious(ctx, current, synthetic)
	if err != nil {
		return s, err
	}
	if previous != nil {
		defer func() { err = errors.Join(err, previous.Close()) }()
	}
	return vintage.Build(ctx, path, rows, vintage.Options{
		Millesime: i.Millesime, Synthetic: synthetic, Previous: previous, Progress: i.Progress,
	})
}

// openPrevious opens the vintage whose id_ban are carried over. It returns nil if no id is: ids are never carried over
// between invented and real addresses. A current vintage that is lost or damaged is an *UnreadableCurrentError.
func (i Import) openPrevious(ctx context.Context, current string, synthetic bool) (*vintage.Vintage, error) {
	if i.Fresh {
		return nil, nil
	}
	if current == "" {
		if lost := i.CheckLost(); lost != nil && !synthetic {
			return nil, &UnreadableCurrentError{lost}
		}
		return nil, nil
	}
	if releases.IsDemo(current) && !synthetic {
		return nil, nil
	}
	v, err := i.Open(current)
	if err != nil {
		return nil, &UnreadableCurrentError{err}
	}
	if v.Synthetic != synthetic {
		return nil, v.Close()
	}
	if err := v.Verify(ctx); err != nil {
		return nil, &UnreadableCurrentError{errors.Join(err, v.Close())}
	}
	return v, nil
}
