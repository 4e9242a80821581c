package vintages

import (
	"context"
	"time"

	"lieudit/queries/address/vintage"
)

// Import is one import into a folder.
type Import struct {
	Folder
	Sources   *Sources
	Millesime string                              // of the result
	Progress  func(stage string, done, total int) // may be nil
	Now       time.Time
}

// Run builds a vintage of the sources and makes it the current one.
func (i Import) Run(ctx context.Context) (name string, s vintage.Summary, err error) {
	rows, stop := i.Sources.Peeked()
	defer stop()
	return i.Add(i.Now, func(path string, previous *vintage.Vintage) (vintage.Summary, error) {
		return vintage.Build(ctx, path, rows, vintage.Options{
			Millesime: i.Millesime, Synthetic: i.Sources.Report.Synthetic > 0, Previous: previous, Progress: i.Progress,
		})
	})
}
