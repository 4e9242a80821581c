package projector

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"lieudit/schemas/table"
)

// Batch is what the events of one transaction do to the rows: each row is folded first and written once.
type Batch struct {
	tables map[string]flusher
	erases bool
	states map[string]any // by table

	repaired map[string]bool // owners of streams that are folded without some of their events
	lenient  bool            // the event that is applied is of one of them
}

type flusher interface {
	flush(context.Context, *table.Tx) error
}

func newBatch() *Batch { return &Batch{tables: map[string]flusher{}, states: map[string]any{}} }

// Erase says that rows lose personal data: what they held must not stay anywhere in the copy's files.
func Erase(b *Batch) { b.erases = true }

// Put adds a row, or replaces the whole row of the same key.
func Put[R any](b *Batch, t table.Table[R], row R) {
	p := pendingOf(b, t)
	key := keyOf(t, &row)
	p.rows[key] = &row
	delete(p.changes, key)
}

// Add adds a row, or merges it into the row of the same key: sums are added up and maxima rise. A table is either added to
// or put into.
func Add[R any](b *Batch, t table.Table[R], row R) {
	p := pendingOf(b, t)
	key := keyOf(t, &row)
	if over, ok := p.rows[key]; ok {
		t.Merge(over, &row)
		return
	}
	p.rows[key] = &row
}

// Change changes the row of a key, which is there: rows of this batch and rows written long ago alike. t has a key of
// one column of text. Only where the event that made the row may be one that a correction names, nothing happens without
// the row.
func Change[R any](b *Batch, t table.Table[R], key string, change func(*R)) {
	ChangeOr(b, t, key, nil, change)
}

// ChangeOr is Change that, where the event that made the row may be one that a correction names, begins with the row of
// missing.
func ChangeOr[R any](b *Batch, t table.Table[R], key string, missing func() R, change func(*R)) {
	p := pendingOf(b, t)
	if row, ok := p.rows[key]; ok {
		change(row)
		return
	}
	p.changes[key] = append(p.changes[key], change)
	if b.lenient {
		p.missing[key] = missing
	}
}

// Wipe drops the rows of a table whose column, one of text, holds a value: those written long ago and those of this batch
// alike. Rows that come later stay.
func Wipe[R any](b *Batch, t table.Table[R], column, value string) {
	WipeWhere(b, t, column+" = ?", value)
}

// WipeWhere is Wipe for the rows that a condition of SQL holds for.
func WipeWhere[R any](b *Batch, t table.Table[R], condition string, args ...any) {
	p := pendingOf(b, t)
	before := &pending[R]{p.table, p.rows, p.changes, p.missing, nil}
	p.rows, p.changes, p.missing = map[string]*R{}, map[string][]func(*R){}, map[string]func() R{}
	p.first = append(p.first, before.flush, func(ctx context.Context, tx *table.Tx) error {
		_, err := tx.Exec(ctx, "delete from "+t.Name+" where "+condition, args...)
		return err
	})
}

// pending is what is to be written to one table.
type pending[R any] struct {
	table   table.Table[R]
	rows    map[string]*R
	changes map[string][]func(*R)                    // of rows that are still to be read
	missing map[string]func() R                      // what rows begin with that may not be there; nil: they need not be
	first   []func(context.Context, *table.Tx) error // what is to be done before any of these
}

func pendingOf[R any](b *Batch, t table.Table[R]) *pending[R] {
	if p, ok := b.tables[t.Name].(*pending[R]); ok {
		return p
	}
	p := &pending[R]{t, map[string]*R{}, map[string][]func(*R){}, map[string]func() R{}, nil}
	b.tables[t.Name] = p
	return p
}

// keyOf is a row's key as one text, in the order of the key where that is one column.
func keyOf[R any](t table.Table[R], row *R) string {
	fields := t.Fields(row)
	if text, ok := fields[0].(*string); ok && t.Key == 1 {
		return *text
	}
	var key []byte
	for _, f := range fields[:t.Key] {
		switch f := f.(type) {
		case *string:
			key = strconv.AppendQuote(key, *f)
		case *int64:
			key = fmt.Appendf(key, "%020d", *f)
		case *table.Instant:
			key = fmt.Appendf(key, "%020d", *f)
		case *bool:
			key = strconv.AppendBool(key, *f)
		case *[]byte:
			key = fmt.Appendf(key, "%x.", *f)
		}
	}
	return string(key)
}

// flush writes the rows, always in the order of their keys: two writers cannot lock each other up.
func (p *pending[R]) flush(ctx context.Context, tx *table.Tx) error {
	for _, do := range p.first {
		if err := do(ctx, tx); err != nil {
			return err
		}
	}
	if err := p.load(ctx, tx); err != nil {
		return err
	}
	keys := make([]string, 0, len(p.rows))
	for key := range p.rows {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	rows := make([]R, len(keys))
	for i, key := range keys {
		rows[i] = *p.rows[key]
	}
	return table.Upsert(ctx, tx, p.table, rows)
}

// load reads the rows that are changed and were not written in this batch.
func (p *pending[R]) load(ctx context.Context, tx *table.Tx) error {
	keys := make([]string, 0, len(p.changes))
	for key := range p.changes {
		keys = append(keys, key)
	}
	loaded, err := table.Load(ctx, tx, p.table, keys)
	if err != nil {
		return err
	}
	for i := range loaded {
		p.change(keyOf(p.table, &loaded[i]), &loaded[i])
	}
	for key := range p.changes {
		begin, tolerated := p.missing[key]
		switch {
		case !tolerated:
			return fmt.Errorf("%s %q is to be changed but is not there", p.table.Name, key)
		case begin != nil:
			row := begin()
			p.change(key, &row)
		}
	}
	return nil
}

// change makes the changes of a key to its row, which is written then.
func (p *pending[R]) change(key string, row *R) {
	for _, change := range p.changes[key] {
		change(row)
	}
	p.rows[key] = row
	delete(p.changes, key)
}

// flush writes everything.
func (b *Batch) flush(ctx context.Context, tx *table.Tx) error {
	names := make([]string, 0, len(b.tables))
	for name := range b.tables {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := b.tables[name].flush(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
