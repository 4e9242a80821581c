package projector

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"lieudit/schemas/table"
)

// Changeset is what the events of one transaction do to the rows: each row is folded first and written once.
type Changeset struct {
	tables     map[string]flusher
	needsScrub bool
	states     map[string]any // by table

	correctedOwners  map[string]bool // owners of streams that are folded without some of their events
	toleratesMissing bool            // the event that is applied is of one of them
}

type flusher interface {
	flush(context.Context, *table.Tx) error
}

func newChangeset() *Changeset {
	return &Changeset{tables: map[string]flusher{}, states: map[string]any{}}
}

// RequireScrub says that rows lose personal data: what they held must not stay anywhere in the copy's files.
func RequireScrub(b *Changeset) { b.needsScrub = true }

// PutRow adds a row, or replaces the whole row of the same key.
func PutRow[R any](b *Changeset, t table.Table[R], row R) {
	p := tableChangesOf(b, t)
	key := rowKey(t, &row)
	p.rows[key] = &row
	delete(p.updates, key)
}

// MergeRow adds a row, or merges it into the row of the same key: sums are added up and maxima rise. A table is either added to
// or put into.
func MergeRow[R any](b *Changeset, t table.Table[R], row R) {
	p := tableChangesOf(b, t)
	key := rowKey(t, &row)
	if existing, ok := p.rows[key]; ok {
		t.MergeRow(existing, &row)
		return
	}
	p.rows[key] = &row
}

// UpdateRow changes the row of a key, which is there: rows of this batch and rows written long ago alike. t has a key of
// one column of text. Only where the event that made the row may be one that a correction names, nothing happens without
// the row.
func UpdateRow[R any](b *Changeset, t table.Table[R], key string, change func(*R)) {
	UpdateRowOr(b, t, key, nil, change)
}

// UpdateRowOr is Change that, where the event that made the row may be one that a correction names, begins with the row of
// missing.
func UpdateRowOr[R any](b *Changeset, t table.Table[R], key string, missing func() R, change func(*R)) {
	p := tableChangesOf(b, t)
	if row, ok := p.rows[key]; ok {
		change(row)
		return
	}
	p.updates[key] = append(p.updates[key], change)
	if b.toleratesMissing {
		p.initialRows[key] = missing
	}
}

// DeleteRows drops the rows of a table whose column, one of text, holds a value: those written long ago and those of this batch
// alike. Rows that come later stay.
func DeleteRows[R any](b *Changeset, t table.Table[R], column, value string) {
	DeleteRowsWhere(b, t, column+" = ?", value)
}

// DeleteRowsWhere is Wipe for the rows that a condition of SQL holds for.
func DeleteRowsWhere[R any](b *Changeset, t table.Table[R], condition string, args ...any) {
	p := tableChangesOf(b, t)
	before := &tableChanges[R]{p.table, p.rows, p.updates, p.initialRows, nil}
	p.rows, p.updates, p.initialRows = map[string]*R{}, map[string][]func(*R){}, map[string]func() R{}
	p.before = append(p.before, before.flush, func(ctx context.Context, tx *table.Tx) error {
		_, err := tx.Exec(ctx, "delete from "+t.Name+" where "+condition, args...)
		return err
	})
}

// tableChanges is what is to be written to one table.
type tableChanges[R any] struct {
	table       table.Table[R]
	rows        map[string]*R
	updates     map[string][]func(*R)                    // of rows that are still to be read
	initialRows map[string]func() R                      // what rows begin with that may not be there; nil: they need not be
	before      []func(context.Context, *table.Tx) error // what is to be done before any of these
}

func tableChangesOf[R any](b *Changeset, t table.Table[R]) *tableChanges[R] {
	if p, ok := b.tables[t.Name].(*tableChanges[R]); ok {
		return p
	}
	p := &tableChanges[R]{t, map[string]*R{}, map[string][]func(*R){}, map[string]func() R{}, nil}
	b.tables[t.Name] = p
	return p
}

// rowKey is a row's key as one text, in the order of the key where that is one column.
func rowKey[R any](t table.Table[R], row *R) string {
	fields := t.Fields(row)
	if text, ok := fields[0].(*string); ok && t.KeyColumns == 1 {
		return *text
	}
	var key []byte
	for _, f := range fields[:t.KeyColumns] {
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
func (p *tableChanges[R]) flush(ctx context.Context, tx *table.Tx) error {
	for _, step := range p.before {
		if err := step(ctx, tx); err != nil {
			return err
		}
	}
	if err := p.loadUpdated(ctx, tx); err != nil {
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

// loadUpdated reads the rows that are changed and were not written in this batch.
func (p *tableChanges[R]) loadUpdated(ctx context.Context, tx *table.Tx) error {
	keys := make([]string, 0, len(p.updates))
	for key := range p.updates {
		keys = append(keys, key)
	}
	loaded, err := table.LoadByKeys(ctx, tx, p.table, keys)
	if err != nil {
		return err
	}
	for i := range loaded {
		p.applyUpdates(rowKey(p.table, &loaded[i]), &loaded[i])
	}
	for key := range p.updates {
		newRow, isTolerated := p.initialRows[key]
		switch {
		case !isTolerated:
			return fmt.Errorf("%s %q is to be changed but is not there", p.table.Name, key)
		case newRow != nil:
			row := newRow()
			p.applyUpdates(key, &row)
		}
	}
	return nil
}

// applyUpdates makes the changes of a key to its row, which is written then.
func (p *tableChanges[R]) applyUpdates(key string, row *R) {
	for _, change := range p.updates[key] {
		change(row)
	}
	p.rows[key] = row
	delete(p.updates, key)
}

// flush writes everything.
func (b *Changeset) flush(ctx context.Context, tx *table.Tx) error {
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
