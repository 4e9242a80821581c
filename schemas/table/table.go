// Package table declares the tables of the read models: columns, rows, versions and the views for people. Projections
// write these rows and queries read them, so a change of a table or of what is written in it is a new Version of its
// ReadModel. Nothing here opens a database: eventstore/sqldb does.
package table

import (
	"slices"
	"time"
)

// ColumnType is what a column holds.
type ColumnType uint8

const (
	Text    ColumnType = iota
	Integer            // 64 bits
	Boolean
	Timestamp // an Instant
	Bytes
)

// Column is one column of a table. No column is ever null: what is absent is empty or zero.
type Column struct {
	Name string
	Type ColumnType
}

// Def is a table as the database sees it.
type Def struct {
	Name       string
	Columns    []Column
	KeyColumns int      // how many of the first columns are the primary key
	Indexes    []string // each a list of columns, "account, position desc"
	SumColumns []string // columns of integers that a row written over another adds to
	MaxColumns []string // columns of instants that a row written over another may raise and never lowers
	ViewName   string   // the name people read it under, with readable times; "" for none
}

// Table is a table with rows of type R. Fields gives pointers to a row's fields in the order of Columns; they are
// read to write a row and written to read one.
type Table[R any] struct {
	Def
	Fields func(*R) []any
}

// ReadModel is a read model: tables that are filled together, and the version of their shape. A change of tables or
// of what handlers write in them is a new version.
type ReadModel struct {
	Name    string
	Version int
	Tables  []Def
	Views   []View
}

// View is a question that people ask often, under a name that stays while copies come and go. In Query a
// table of the model stands as {table}, a column of instants as {time:column}, which people can read.
type View struct{ Name, Query string }

// Instant is a time as tables hold it: microseconds since 1970, UTC. The zero Instant is no time at all.
type Instant int64

// InstantOf is the Instant of a time, the zero Instant of the zero time.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Time is the instant as a time in UTC, the zero time where there is none.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// MergeRow writes a row over another of the same key as Upsert does.
func (t Table[R]) MergeRow(over, row *R) {
	stored, incoming := t.Fields(over), t.Fields(row)
	merged := *row
	targets := t.Fields(&merged)
	for i, c := range t.Columns {
		switch f := targets[i].(type) {
		case *int64:
			if slices.Contains(t.SumColumns, c.Name) {
				*f = *stored[i].(*int64) + *incoming[i].(*int64)
			}
		case *Instant:
			if slices.Contains(t.MaxColumns, c.Name) {
				*f = max(*stored[i].(*Instant), *incoming[i].(*Instant))
			}
		}
	}
	*over = merged
}
