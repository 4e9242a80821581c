package memory

import (
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"lieudit/schemas/table"
)

// parsedRow is a row as an index takes it in.
type parsedRow struct {
	indexEntry
	compressed []byte
}

const rowsPerGoroutine = 256 // rows that are worth a goroutine

// parseRows reads the rows that an index is to hold, on all processors: an account that was never searched is read whole
// while somebody waits.
func parseRows(rows []table.Site, includes func(active bool) bool, dictionary string) ([]parsedRow, error) {
	parsed := make([]parsedRow, len(rows))
	share := max(len(rows)/runtime.GOMAXPROCS(0)+1, rowsPerGoroutine)
	var readers errgroup.Group
	for start := 0; start < len(rows); start += share {
		readers.Go(func() (err error) {
			compressor := newCompressor(dictionary)
			for i := start; i < min(start+share, len(rows)) && err == nil; i++ {
				if r := &rows[i]; includes(r.Active) {
					parsed[i].indexEntry, err = parseEntry(r)
					parsed[i].compressed = slices.Clone(compressor.compress(r.Content))
				}
			}
			return err
		})
	}
	return parsed, readers.Wait()
}
