package projector

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// StreamState is what the rules of a model know of each stream before they decide. It is kept in the rows of a table whose key
// is the stream: those of a batch are read in its transaction before the first event is applied, and what became of
// them is written with everything else. Nothing of it outlives the batch, so there is nothing to go out of step.
type StreamState[R, S any] struct {
	Table    table.Table[R]
	Category string // of the streams that have a state
	// Restore is the state in a row, or that of a stream that has no row yet when the row is nil.
	Restore func(row *R) (S, error)
	// Save puts what is to be written of the state after the last event of the batch.
	Save func(b *Changeset, stream string, s S) error
}

// ForEvent is the state of the stream an event is in.
func (k StreamState[R, S]) ForEvent(b *Changeset, r Record) S {
	return b.states[k.Table.Name].(statesByStream[S])[r.Stream]
}

type statesByStream[S any] map[string]S

// AnyStreamState is a State of whatever types.
type AnyStreamState interface {
	open(context.Context, *sqldb.Tx, *Changeset, []decodedEvent) error
	close(*Changeset) error
}

func (k StreamState[R, S]) open(ctx context.Context, tx *sqldb.Tx, b *Changeset, decoded []decodedEvent) error {
	states, filter := statesByStream[S]{}, eventstore.Filter{k.Category}
	for _, f := range decoded {
		if filter.Matches(f.record.Stream) {
			states[f.record.Stream] = *new(S)
		}
	}
	rows, err := sqldb.LoadByKeys(ctx, tx, k.Table, slices.Sorted(maps.Keys(states)))
	if err != nil {
		return err
	}
	rowsByStream := make(map[string]*R, len(rows))
	for i := range rows {
		rowsByStream[rowKey(k.Table, &rows[i])] = &rows[i]
	}
	for stream := range states {
		if states[stream], err = k.Restore(rowsByStream[stream]); err != nil {
			return fmt.Errorf("state of %s: %w", stream, err)
		}
	}
	b.states[k.Table.Name] = states
	return nil
}

func (k StreamState[R, S]) close(b *Changeset) error {
	for stream, s := range b.states[k.Table.Name].(statesByStream[S]) {
		if err := k.Save(b, stream, s); err != nil {
			return fmt.Errorf("state of %s: %w", stream, err)
		}
	}
	return nil
}
