package projector

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// State is what the rules of a model know of each stream before they decide. It is kept in the rows of a table whose key
// is the stream: those of a batch are read in its transaction before the first event is applied, and what became of
// them is written with everything else. Nothing of it outlives the batch, so there is nothing to go out of step.
type State[R, S any] struct {
	Table    table.Table[R]
	Category string // of the streams that have a state
	// Open is the state in a row, or that of a stream that has no row yet when the row is nil.
	Open func(row *R) (S, error)
	// Close puts what is to be written of the state after the last event of the batch.
	Close func(b *Batch, stream string, s S) error
}

// Of is the state of the stream an event is in.
func (k State[R, S]) Of(b *Batch, r Record) S { return b.states[k.Table.Name].(opened[S])[r.Stream] }

type opened[S any] map[string]S

// Stateful is a State of whatever types.
type Stateful interface {
	open(context.Context, *table.Tx, *Batch, []fact) error
	close(*Batch) error
}

func (k State[R, S]) open(ctx context.Context, tx *table.Tx, b *Batch, facts []fact) error {
	states, wanted := opened[S]{}, eventstore.Filter{k.Category}
	for _, f := range facts {
		if wanted.Matches(f.record.Stream) {
			states[f.record.Stream] = *new(S)
		}
	}
	rows, err := table.Load(ctx, tx, k.Table, slices.Sorted(maps.Keys(states)))
	if err != nil {
		return err
	}
	there := make(map[string]*R, len(rows))
	for i := range rows {
		there[keyOf(k.Table, &rows[i])] = &rows[i]
	}
	for stream := range states {
		if states[stream], err = k.Open(there[stream]); err != nil {
			return fmt.Errorf("state of %s: %w", stream, err)
		}
	}
	b.states[k.Table.Name] = states
	return nil
}

func (k State[R, S]) close(b *Batch) error {
	for stream, s := range b.states[k.Table.Name].(opened[S]) {
		if err := k.Close(b, stream, s); err != nil {
			return fmt.Errorf("state of %s: %w", stream, err)
		}
	}
	return nil
}
