package specimen

import (
	"context"
	"io"
	"iter"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
)

// Rows yields what Write writes as rows of the base, without a file: one goroutine writes into a pipe that is read here. It
// has ended when the iteration ends, also an early one. An error of Write is yielded and ends the rows.
func Rows(ctx context.Context, t *commune.Table, o Order) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		reader, writer := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			writer.CloseWithError(Write(ctx, writer, t, o)) // the reader receives the error
		}()
		defer func() {
			reader.CloseWithError(io.ErrClosedPipe) // ends a Write that is not done
			<-ended
		}()
		for row, err := range ban.Read(reader, "specimen", &ban.Report{}) {
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
