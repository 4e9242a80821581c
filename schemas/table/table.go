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

func (d Def) columnList() string { return joinNames(d.Columns) }

func joinNames(columns []Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// createStatements are the statements that make the table.
func (d Def) createStatements(dialect dialect) []string {
	columns := make([]string, len(d.Columns))
	for i, c := range d.Columns {
		columns[i] = fmt.Sprintf("%s %s not null", c.Name, dialect.columnTypes[c.Type])
	}
	statements := []string{fmt.Sprintf("create table if not exists %s (%s, primary key (%s))",
		d.Name, strings.Join(columns, ", "), joinNames(d.Columns[:d.KeyColumns]))}
	for i, columns := range d.Indexes {
		statements = append(statements, fmt.Sprintf("create index if not exists %s_%d on %s (%s)", d.Name, i+1, d.Name, columns))
	}
	return statements
}

// onConflictClause is how a statement that inserts a row goes on where the row is there already.
func (d Def) onConflictClause() string {
	if d.KeyColumns == len(d.Columns) {
		return " on conflict do nothing"
	}
	sets := make([]string, 0, len(d.Columns)-d.KeyColumns)
	for _, c := range d.Columns[d.KeyColumns:] {
		sets = append(sets, c.Name+" = "+d.mergeExpression(c.Name))
	}
	return " on conflict (" + joinNames(d.Columns[:d.KeyColumns]) + ") do update set " + strings.Join(sets, ", ")
}

func (d Def) mergeExpression(column string) string {
	stored, incoming := d.Name+"."+column, "excluded."+column
	switch {
	case slices.Contains(d.SumColumns, column):
		return stored + " + " + incoming
	case slices.Contains(d.MaxColumns, column):
		return "case when " + stored + " > " + incoming + " then " + stored + " else " + incoming + " end"
	}
	return incoming
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
