// Package table declares the tables of the read models: columns, rows, versions, and the SQL views through which people who
// query the database by hand read microseconds as times. Projections write these rows and queries read them, so a change of a
// table, or of what is written in it, is a new Version of its ReadModel. Nothing here opens a database: eventstore/sqldb does.
package table

import (
	"slices"
	"time"
)

// ColumnType is the type of a column's values. Each SQL dialect names it differently.
type ColumnType uint8

const (
	Text    ColumnType = iota
	Integer            // 64 bits
	Boolean
	Timestamp // an Instant
	Bytes
)

// Column is one column of a table. No column is ever null: an absent value is empty or zero.
type Column struct {
	Name string
	Type ColumnType
}

// Def is the definition of a table.
type Def struct {
	Name       string
	Columns    []Column
	KeyColumns int      // how many of the first columns are the primary key
	Indexes    []string // each a list of columns, "account, position desc"
	SumColumns []string // Integer columns: writing over a row adds to them
	MaxColumns []string // Integer and Timestamp columns: writing over a row can raise them, never lower
	MinColumns []string // Integer columns: writing over a row can lower them, never raise; 0 means no value yet
	ViewName   string   // of a view for people, with readable times, or ""

	// PersonalColumns hold the data that an erasure removes from rows. None of it may then remain in the database's files or
	// in its statistics.
	PersonalColumns []string
}

// Table is a table with rows of type R. Fields returns pointers to a row's fields in the order of Columns: *string,
// *int64, *bool, *Instant or *[]byte. They are read to write a row and written to read one.
type Table[R any] struct {
	Def
	Fields func(*R) []any
}

// ReadModel is a set of tables that one projection fills together. A change of the tables, or of what the projection writes in
// them, is a new Version: the read model is then rebuilt next to the old one.
type ReadModel struct {
	Name    string
	Version int
	Tables  []Def
	Views   []View
}

// View is a query that people often make, under a name that stays the same across generations. In Query, {name} is a table of
// the model and {time:column} a Timestamp column that people can read.
type View struct{ Name, Query string }

// Instant is a time as tables hold it: microseconds since 1970, UTC. The zero Instant stands for no time.
type Instant int64

// InstantOf is the Instant of a time, truncated to the microsecond; the zero time has the zero Instant.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Time is the instant as a time in UTC; the zero Instant is the zero time.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// MergeRow merges row into over, which has the same key, as Upsert of eventstore/sqldb does in the database: SumColumns are
// added, MaxColumns are raised, MinColumns are lowered, and all other columns are replaced. So a batch can first be merged in memory. row is not
// changed.
func (t Table[R]) MergeRow(over, row *R) {
	stored, incoming := t.Fields(over), t.Fields(row)
	merged := *row
	targets := t.Fields(&merged)
	for i, c := range t.Columns {
		switch f := targets[i].(type) {
		case *int64:
			*f = t.mergeInteger(c.Name, *stored[i].(*int64), *incoming[i].(*int64))
		case *Instant:
			if slices.Contains(t.MaxColumns, c.Name) {
				*f = max(*stored[i].(*Instant), *incoming[i].(*Instant))
			}
		}
	}
	*over = merged
}

// mergeInteger returns the value of a column when a row is written over another.
func (d *Def) mergeInteger(column string, stored, incoming int64) int64 {
	switch {
	case slices.Contains(d.SumColumns, column):
		return stored + incoming
	case slices.Contains(d.MaxColumns, column):
		return max(stored, incoming)
	case slices.Contains(d.MinColumns, column) && (incoming == 0 || stored != 0 && stored < incoming):
		return stored
	}
	return incoming
}
