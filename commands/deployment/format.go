package deployment

import (
	"context"
	"fmt"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// UnknownFormatError means that the log's format is higher than this program knows. A later program has raised it; this one
// must not use the log, which may hold events that it cannot read.
type UnknownFormatError struct {
	Format, Known int
	Program       string // version of the program that raised it
}

func (e *UnknownFormatError) Error() string {
	return fmt.Sprintf("the log has format %d since lieudit %s and this program knows none above %d: start lieudit %s or a later version",
		e.Format, e.Program, e.Known, e.Program)
}

// RaiseFormat raises the log's format. It appends nothing if the log's format is as high already. It does not know which
// instances are running: the caller must make sure that all of them know the format.
func (d *Deployment) RaiseFormat(ctx context.Context, meta commands.Metadata, format int) error {
	_, err := d.handler.Handle(ctx, streamID, meta, func(s *State) commands.Result {
		if s.Format() >= format {
			return commands.Result{}
		}
		return commands.Append(event.FormatRaised{Format: format, Program: d.program})
	})
	return err
}

// CheckFormat returns an *UnknownFormatError for a log that this program must not use, and the log's format otherwise. It
// passes over events that this program cannot decode, which a later program may have written to the same stream.
func (d *Deployment) CheckFormat(ctx context.Context) (int, error) {
	raised := event.FormatRaised{Format: event.FirstFormat}
	for r, err := range d.store.ReadStream(ctx, Aggregate.Category+"-"+streamID, 0, eventstore.Forward) {
		if err != nil {
			return 0, fmt.Errorf("format of the log: %w", err)
		}
		e, _ := eventstore.DecodeSealed(r)
		if f, ok := e.(event.FormatRaised); ok && f.Format > raised.Format {
			raised = f
		}
	}
	d.noteFormat(raised.Format)
	if raised.Format > event.HighestFormat {
		return raised.Format, &UnknownFormatError{Format: raised.Format, Known: event.HighestFormat, Program: raised.Program}
	}
	return raised.Format, nil
}

// HasFormat reports whether the log has a format or a higher one, so that events of the types with that MinFormat, or a new
// form of stream, may be written. It reads the log until it has seen the format once, and then never again, because formats
// only rise.
func (d *Deployment) HasFormat(ctx context.Context, format int) (bool, error) {
	if format <= max(int(d.seen.Load()), event.FirstFormat) {
		return true, nil
	}
	found, err := d.CheckFormat(ctx)
	return err == nil && format <= found, err
}

// noteFormat records the highest format that was found.
func (d *Deployment) noteFormat(format int) {
	for seen := d.seen.Load(); int64(format) > seen && !d.seen.CompareAndSwap(seen, int64(format)); {
		seen = d.seen.Load()
	}
}
