// Package table is what the two sides of a relational read model must both know: the tables, their rows and
// versions, which copy of them serves, and the one dialect in which every statement is written. The same
// statements run on Postgres and on SQLite; dialect.go holds all that differs.
package table

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Type is what a column holds.
type Type uint8

const (
	Text    Type = iota
	Integer      // 64 bits
	Boolean
	Moment // an Instant
	Bytes
)

// Column is one column of a table. No column is ever null: what is absent is empty or zero.
type Column struct {
	Name string
	Type Type
}

// Def is a table as the database sees it.
type Def struct {
	Name    string
	Columns []Column
	Key     int      // how many of the first columns are the primary key
	Indexes []string // each a list of columns, "account, position desc"
	Sums    []string // columns of integers that a row written over another adds to
	Maxima  []string // columns of instants that a row written over another may raise and never lowers
	View    string   // the name people read it under, with readable times; "" for none
}

// Table is a table with rows of type R. Fields gives pointers to a row's fields in the order of Columns; they are
// read to write a row and written to read one.
type Table[R any] struct {
	Def
	Fields func(*R) []any
}

// Model is a read model: tables that are filled together, and the version of their shape. A change of tables or
// of what handlers write in them is a new version.
type Model struct {
	Name    string
	Version int
	Tables  []Def
	Views   []View
}

// Instant is a time as tables hold it: microseconds since 1970, UTC. The zero Instant is no time at all.
type Instant int64

// At is the Instant of a time, the zero Instant of the zero time.
func At(t time.Time) Instant {
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

func (d Def) names() string { return list(d.Columns) }

func list(columns []Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// create are the statements that make the table.
func (d Def) create(l dialect) []string {
	columns := make([]string, len(d.Columns))
	for i, c := range d.Columns {
		columns[i] = fmt.Sprintf("%s %s not null", c.Name, l.types[c.Type])
	}
	made := []string{fmt.Sprintf("create table if not exists %s (%s, primary key (%s))",
		d.Name, strings.Join(columns, ", "), list(d.Columns[:d.Key]))}
	for i, columns := range d.Indexes {
		made = append(made, fmt.Sprintf("create index if not exists %s_%d on %s (%s)", d.Name, i+1, d.Name, columns))
	}
	return made
}

// upserted is how a statement that inserts a row goes on where the row is there already.
func (d Def) upserted() string {
	if d.Key == len(d.Columns) {
		return " on conflict do nothing"
	}
	sets := make([]string, 0, len(d.Columns)-d.Key)
	for _, c := range d.Columns[d.Key:] {
		sets = append(sets, c.Name+" = "+d.merged(c.Name))
	}
	return " on conflict (" + list(d.Columns[:d.Key]) + ") do update set " + strings.Join(sets, ", ")
}

func (d Def) merged(column string) string {
	there, written := d.Name+"."+column, "excluded."+column
	switch {
	case slices.Contains(d.Sums, column):
		return there + " + " + written
	case slices.Contains(d.Maxima, column):
		return "case when " + there + " > " + written + " then " + there + " else " + written + " end"
	}
	return written
}

// Merge writes a row over another of the same key as Upsert does.
func (t Table[R]) Merge(over, row *R) {
	there, written := t.Fields(over), t.Fields(row)
	merged := *row
	into := t.Fields(&merged)
	for i, c := range t.Columns {
		switch f := into[i].(type) {
		case *int64:
			if slices.Contains(t.Sums, c.Name) {
				*f = *there[i].(*int64) + *written[i].(*int64)
			}
		case *Instant:
			if slices.Contains(t.Maxima, c.Name) {
				*f = max(*there[i].(*Instant), *written[i].(*Instant))
			}
		}
	}
	*over = merged
}
