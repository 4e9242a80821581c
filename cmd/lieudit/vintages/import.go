package vintages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/queries/address/vintage"
)

// Import is one import into a folder.
type Import struct {
	Folder
	Sources   *Sources
	Millesime string                              // of the result; a finished vintage has its own
	SHA256    string                              // of a finished vintage, in hexadecimal
	Fresh     bool                                // carry no id_ban over
	Progress  func(stage string, done, total int) // may be nil
	Now       time.Time
}

// UnreadableCurrentError says that the current vintage cannot be read, so that its ids cannot be carried over.
type UnreadableCurrentError struct{ Err error }

func (e *UnreadableCurrentError) Error() string {
	return fmt.Sprintf("the current vintage cannot be read, so no id_ban can be carried over from it: %v", e.Err)
}

func (e *UnreadableCurrentError) Unwrap() error { return e.Err }

// Run builds a vintage of the sources, or takes over the finished one they are, and makes it the current one.
func (i Import) Run(ctx context.Context) (name string, s vintage.Summary, err error) {
	isFinished, err := i.Sources.IsFinishedVintage()
	if err != nil {
		return "", s, err
	}
	if isFinished {
		return i.Add(ctx, i.Now, func(path, _ string) (vintage.Summary, error) { return i.Sources.importFinished(path, i.SHA256) })
	}
	if i.SHA256 != "" {
		return "", s, ErrUnfinished
	}
	rows, stop := i.Sources.PeekRows()
	defer stop()
	return i.Add(ctx, i.Now, func(path, current string) (s vintage.Summary, err error) {
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
	})
}

// openPrevious is the vintage whose ids live on; nil: none. Nothing is carried from invented addresses to real ones, and
// nothing from a vintage that is not whole.
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
	if isDemo(current) && !synthetic {
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
