package local

import (
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"lieudit/schemas/table"
)

// readRow is a row as an index takes it in.
type readRow struct {
	entry
	squeezed []byte
}

const readShare = 256 // rows that are worth a goroutine

// readAll reads the rows that an index is to hold, on all processors: an account that was never searched is read whole
// while somebody waits.
func readAll(rows []table.Site, holds func(active bool) bool, primer string) ([]readRow, error) {
	read := make([]readRow, len(rows))
	share := max(len(rows)/runtime.GOMAXPROCS(0)+1, readShare)
	var readers errgroup.Group
	for from := 0; from < len(rows); from += share {
		readers.Go(func() (err error) {
			squeezer := newSqueezer(primer)
			for i := from; i < min(from+share, len(rows)) && err == nil; i++ {
				if r := &rows[i]; holds(r.Active) {
					read[i].entry, err = entryOf(r)
					read[i].squeezed = slices.Clone(squeezer.squeeze(r.Content))
				}
			}
			return err
		})
	}
	return read, readers.Wait()
}
