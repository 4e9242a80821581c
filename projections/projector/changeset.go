package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// Changeset collects the changes that the events of one transaction make to rows: the changes of a row are folded first, and
// the row is written once. Handlers change it with PutRow, MergeRow, UpdateRow and DeleteRows. It is not safe for concurrent
// use.
type Changeset struct {
	tables     map[string]flusher
	needsScrub bool
	states     map[string]any // of streams, by table

	correctedOwners  map[string]bool // owners of streams that are folded without the events that corrections void
	toleratesMissing bool            // the event being applied is of such a stream: rows of voided events may be missing
}

// flusher is the tableChanges of a table with rows of any type.
type flusher interface {
	flush(context.Context, *sqldb.Tx) error
}

func newChangeset() *Changeset {
	return &Changeset{tables: map[string]flusher{}, states: map[string]any{}}
}

// RequireScrub marks that rows lose personal data: after the transaction none of it may remain in the database's files.
func RequireScrub(b *Changeset) { b.needsScrub = true }

// PutRow adds a row, or replaces the whole row with the same key. Pending updates of the old row are dropped.
func PutRow[R any](b *Changeset, t table.Table[R], row R) {
	p := tableChangesOf(b, t)
	key := rowKey(t, &row)
	p.rows[key] = &row
	delete(p.updates, key)
}

// MergeRow adds a row, or merges it into the row with the same key as the columns of the table define: sums are added, maxima
// rise. A table is either merged into or put into, never both.
func MergeRow[R any](b *Changeset, t table.Table[R], row R) {
	p := tableChangesOf(b, t)
	key := rowKey(t, &row)
	if existing, ok := p.rows[key]; ok {
		t.MergeRow(existing, &row)
		return
	}
	p.rows[key] = &row
}

// UpdateRow changes the row of a key, whether this batch wrote it or an earlier one. The key of t must be one column of text.
// A missing row is an error, unless a correction may have voided the event that made it: then nothing happens.
//
// change may run at once, or only when the changeset is flushed if the row must be read first. So it may change only the row
// it is given, and must not use anything that later events change.
func UpdateRow[R any](b *Changeset, t table.Table[R], key string, change func(*R)) {
	UpdateRowOr(b, t, key, nil, change)
}

// UpdateRowOr is UpdateRow that starts from the row of missing if a correction may have voided the event that made the row.
func UpdateRowOr[R any](b *Changeset, t table.Table[R], key string, missing func() R, change func(*R)) {
	p := tableChangesOf(b, t)
	if row, ok := p.rows[key]; ok {
		change(row)
		return
	}
	p.updates[key] = append(p.updates[key], rowUpdate[R]{change, missing, b.toleratesMissing})
}

// DeleteRows deletes the rows of a table whose text column holds a value, whether this batch wrote them or an earlier
// one. Rows that later events put stay.
func DeleteRows[R any](b *Changeset, t table.Table[R], column, value string) {
	DeleteRowsWhere(b, t, column+" = ?", value)
}

// DeleteRowsWhere is DeleteRows for the rows that match an SQL condition.
func DeleteRowsWhere[R any](b *Changeset, t table.Table[R], condition string, args ...any) {
	runStatement(b, t, "delete from {"+t.Name+"} where "+condition, args...)
}

// BlankColumns empties text columns of the rows of a table whose text column holds a value, whether this batch wrote them or
// an earlier one. Rows that later events put stay.
func BlankColumns[R any](b *Changeset, t table.Table[R], blank []string, column, value string) {
	runStatement(b, t, "update {"+t.Name+"} set "+strings.Join(blank, " = '', ")+" = '' where "+column+" = ?", value)
}

// runStatement runs a statement on many rows of a table, after the changes collected before it.
func runStatement[R any](b *Changeset, t table.Table[R], statement string, args ...any) {
	p := tableChangesOf(b, t)
	before := &tableChanges[R]{p.table, p.rows, p.updates, nil}
	p.rows, p.updates = map[string]*R{}, map[string][]rowUpdate[R]{}
	p.before = append(p.before, before.flush, func(ctx context.Context, tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

// tableChanges holds the changes to write to one table.
type tableChanges[R any] struct {
	table   table.Table[R]
	rows    map[string]*R
	updates map[string][]rowUpdate[R]                // of rows that are yet to be read
	before  []func(context.Context, *sqldb.Tx) error // steps that come first: each statement, after the changes collected before it
}

// rowUpdate is one call of UpdateRowOr.
type rowUpdate[R any] struct {
	change       func(*R)
	missing      func() R // makes a missing row; nil: it stays missing
	mayBeMissing bool     // otherwise a missing row is an error
}

// tableChangesOf returns the changes of a table, new ones at the first call.
func tableChangesOf[R any](b *Changeset, t table.Table[R]) *tableChanges[R] {
	if p, ok := b.tables[t.Name].(*tableChanges[R]); ok {
		return p
	}
	p := &tableChanges[R]{t, map[string]*R{}, map[string][]rowUpdate[R]{}, nil}
	b.tables[t.Name] = p
	return p
}

// rowKey is the key of a row as one text, which sorts like the key if that is one column.
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

// flush writes the rows in the order of their keys, so that two transactions cannot deadlock.
func (p *tableChanges[R]) flush(ctx context.Context, tx *sqldb.Tx) error {
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
	return sqldb.Upsert(ctx, tx, p.table, rows)
}

// loadUpdated reads the rows that pending updates need, and applies the updates.
func (p *tableChanges[R]) loadUpdated(ctx context.Context, tx *sqldb.Tx) error {
	keys := make([]string, 0, len(p.updates))
	for key := range p.updates {
		keys = append(keys, key)
	}
	loaded, err := sqldb.LoadByKeys(ctx, tx, p.table, keys)
	if err != nil {
		return err
	}
	rows := map[string]*R{}
	for i := range loaded {
		rows[rowKey(p.table, &loaded[i])] = &loaded[i]
	}
	for key, updates := range p.updates {
		row, err := applyUpdates(rows[key], updates)
		if err != nil {
			return fmt.Errorf("%s %q %w", p.table.Name, key, err)
		}
		if row != nil {
			p.rows[key] = row
		}
	}
	clear(p.updates)
	return nil
}

// errMissingRow ends the text that names a row.
var errMissingRow = errors.New("is to be changed but is not there")

// applyUpdates applies the updates to a row, nil if there is none. It returns the resulting row.
func applyUpdates[R any](row *R, updates []rowUpdate[R]) (*R, error) {
	for _, u := range updates {
		switch {
		case row == nil && !u.mayBeMissing:
			return nil, errMissingRow
		case row == nil && u.missing == nil:
			continue
		case row == nil:
			made := u.missing()
			row = &made
		}
		u.change(row)
	}
	return row, nil
}

// flush writes the changes of all tables in a transaction. If a deferred change panics, that is an error, as in a handler.
func (b *Changeset) flush(ctx context.Context, tx *sqldb.Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("rows cannot be changed: %v", cause)
		}
	}()
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
	if b.needsScrub {
		return tx.RequireScrub(ctx)
	}
	return nil
}
