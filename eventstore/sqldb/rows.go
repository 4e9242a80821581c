package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"lieudit/schemas/table"
)

// Querier is a DB or a running transaction: whatever can be read from.
type Querier interface {
	Query(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
	hasColumnArrays() bool
}

// Select reads whole rows. rest is the part of the statement behind the table's name: where, order by, limit. It is SQL,
// so values go into args and never into rest.
func Select[R any](ctx context.Context, q Querier, t table.Table[R], rest string, args ...any) ([]R, error) {
	rows, err := q.Query(ctx, "select "+columnList(t.Def)+" from {"+t.Name+"} "+rest, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []R
	for rows.Next() {
		var r R
		if err := rows.Scan(t.Fields(&r)...); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

// Range is which rows SelectWithin reads, and how much of them.
type Range[R any] struct {
	Where  string // SQL with placeholders for Args, without the word
	Args   []any
	Order  string          // columns that order the rows, the key among them, separated by commas
	IsDown bool            // the order is descending
	Column string          // whose bytes are counted
	Text   func(*R) string // the text of that column
	Rows   int
	Bytes  int
}

// SelectWithin reads the first rows of a range: at most Rows of them, and none after the one with which the counted column has Bytes.
// more reports whether there are rows after them. So a caller bounds what it holds in memory without knowing how large rows are.
//
// One statement measures the rows and reads those that fit. Both databases know the length of a long text without reading it.
func SelectWithin[R any](ctx context.Context, q Querier, t table.Table[R], r Range[R]) (rows []R, more bool, err error) {
	key, order := joinNames(t.Columns[:t.KeyColumns]), r.Order
	if r.IsDown {
		order = strings.ReplaceAll(order, ",", " desc,") + " desc"
	}
	// One row more than fits shows whether there are more: a row is returned if all but the last two rows before it fit.
	rows, err = Select(ctx, q, t, "where ("+key+") in (select "+key+" from (select "+key+
		", sum(size) over (order by "+order+" rows between unbounded preceding and 2 preceding) as size_before from (select "+r.Order+
		", octet_length("+r.Column+") as size from {"+t.Name+"} where "+r.Where+" order by "+order+
		" limit ?) as listed) as measured where coalesce(size_before, 0) < ?) order by "+order,
		append(slices.Clone(r.Args), r.Rows+1, r.Bytes)...)
	n := 0
	for size := 0; n < len(rows) && n < r.Rows && size < r.Bytes; n++ {
		size += len(r.Text(&rows[n]))
	}
	return rows[:n], n < len(rows), err
}

// LoadByKeys reads the rows whose key, in one column, is among keys, in no particular order. Keys without a row are
// left out.
func LoadByKeys[R any](ctx context.Context, q Querier, t table.Table[R], keys []string) ([]R, error) {
	return LoadByColumn(ctx, q, t, t.Columns[0].Name, keys)
}

// LoadByColumn is LoadByKeys for any column of text.
func LoadByColumn[R any](ctx context.Context, q Querier, t table.Table[R], column string, values []string) ([]R, error) {
	if len(values) == 0 {
		return nil, nil
	}
	if q.hasColumnArrays() {
		return Select(ctx, q, t, "where "+column+" = any(?)", values)
	}
	var found []R
	for len(values) > 0 { // a statement has only so many placeholders
		n := groupSize(len(values))
		args := make([]any, n)
		for i, k := range values[:n] {
			args[i] = k
		}
		rows, err := Select(ctx, q, t, "where "+column+" in (?"+strings.Repeat(", ?", n-1)+")", args...)
		if err != nil {
			return nil, err
		}
		found, values = append(found, rows...), values[n:]
	}
	return found, nil
}

// Upsert writes whole rows: new ones are added, and those whose key exists replace the row that is there, but for the
// table's SumColumns, MaxColumns and MinColumns. No key may come twice in rows.
func Upsert[R any](ctx context.Context, tx *Tx, t table.Table[R], rows []R) error {
	if len(rows) > 0 && tx.hasColumnArrays() {
		return upsertArrays(ctx, tx, t, rows)
	}
	for len(rows) > 0 {
		n := groupSize(len(rows))
		grouped := len(rows) / n * n // rows that go in groups of that size
		if err := upsertGroups(ctx, tx, t, rows[:grouped], n); err != nil {
			return err
		}
		rows = rows[grouped:]
	}
	return nil
}

// upsertGroups writes rows n at a time with one prepared statement, since a statement takes only so many placeholders.
// n divides the number of rows.
func upsertGroups[R any](ctx context.Context, tx *Tx, t table.Table[R], rows []R, n int) error {
	statement, err := tx.sqlTx.PrepareContext(ctx, tx.db.rewriteStatement(insertStatement(t.Def, n)))
	if err != nil {
		return tx.db.wrapError(ctx, err)
	}
	defer statement.Close()
	args := make([]any, 0, n*len(t.Columns))
	for from := 0; from < len(rows); from += n {
		args = args[:0]
		for i := range rows[from : from+n] {
			args = append(args, t.Fields(&rows[from+i])...)
		}
		if _, err := statement.ExecContext(ctx, sanitizeArgs(args)...); err != nil {
			return tx.db.wrapError(ctx, err)
		}
	}
	return nil
}

// groupSize is how many of n rows go into one statement. The sizes are few, so that the same statements come again.
func groupSize(n int) int {
	for _, size := range []int{200, 50, 10} {
		if n >= size {
			return size
		}
	}
	return n
}

// insertStatement inserts n rows, or writes them over those that are there.
func insertStatement(d table.Def, rows int) string {
	row := "(?" + strings.Repeat(", ?", len(d.Columns)-1) + ")"
	return "insert into {" + d.Name + "} (" + columnList(d) + ") values " +
		row + strings.Repeat(", "+row, rows-1) + onConflictClause(d)
}

// upsertArrays passes each column as one array, so one short statement writes any number of rows. It needs a dialect with
// columnArrays.
func upsertArrays[R any](ctx context.Context, tx *Tx, t table.Table[R], rows []R) error {
	columns := make([]any, len(t.Columns))
	for i := range rows {
		for c, field := range t.Fields(&rows[i]) {
			columns[c] = appendColumn(columns[c], field)
		}
	}
	casts := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		casts[i] = "?::" + tx.db.dialect.arrayTypes[c.Type]
	}
	_, err := tx.Exec(ctx, "insert into {"+t.Name+"} ("+columnList(t.Def)+") select * from unnest("+
		strings.Join(casts, ", ")+")"+onConflictClause(t.Def), columns...)
	return err
}

// appendColumn appends the value that field points to to a column's array, which is nil before the first row. There is
// one case for each table.ColumnType.
func appendColumn(column, field any) any {
	switch f := field.(type) {
	case *string:
		return appendValue(column, *f)
	case *int64:
		return appendValue(column, *f)
	case *table.Instant:
		return appendValue(column, int64(*f))
	case *bool:
		return appendValue(column, *f)
	case *[]byte:
		return appendValue(column, *f)
	}
	return column
}

func appendValue[T any](column any, value T) any {
	values, _ := column.([]T)
	return append(values, value)
}

func columnList(d table.Def) string { return joinNames(d.Columns) }

func joinNames(columns []table.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// createStatements are the statements that make a table and its indexes where they do not exist.
func (l dialect) createStatements(d table.Def) []string {
	columns := make([]string, len(d.Columns))
	for i, c := range d.Columns {
		columns[i] = fmt.Sprintf("%s %s not null", c.Name, l.columnTypes[c.Type])
	}
	statements := []string{fmt.Sprintf("create table if not exists {%s} (%s, primary key (%s))",
		d.Name, strings.Join(columns, ", "), joinNames(d.Columns[:d.KeyColumns]))}
	for i, columns := range d.Indexes {
		statements = append(statements, fmt.Sprintf("create index if not exists %s_%d on {%s} (%s)", d.Name, i+1, d.Name, columns))
	}
	for _, column := range d.PersonalColumns {
		if l.samplesValues {
			statements = append(statements, fmt.Sprintf("alter table {%s} alter column %s set statistics 0", d.Name, column))
		}
	}
	return statements
}

// onConflictClause is the end of an insert statement: what it does where the row's key exists.
func onConflictClause(d table.Def) string {
	if d.KeyColumns == len(d.Columns) {
		return " on conflict do nothing"
	}
	sets := make([]string, 0, len(d.Columns)-d.KeyColumns)
	for _, c := range d.Columns[d.KeyColumns:] {
		sets = append(sets, c.Name+" = "+mergeExpression(d, c.Name))
	}
	return " on conflict (" + joinNames(d.Columns[:d.KeyColumns]) + ") do update set " + strings.Join(sets, ", ")
}

// mergeExpression is the value of a column when a row is written over another. table.Table.MergeRow does the same in
// memory.
func mergeExpression(d table.Def, column string) string {
	stored, incoming := d.Name+"."+column, "excluded."+column
	switch {
	case slices.Contains(d.SumColumns, column):
		return stored + " + " + incoming
	case slices.Contains(d.MaxColumns, column):
		return "case when " + stored + " > " + incoming + " then " + stored + " else " + incoming + " end"
	case slices.Contains(d.MinColumns, column):
		return "case when " + incoming + " = 0 or " + stored + " <> 0 and " + stored + " < " + incoming + " then " + stored + " else " + incoming + " end"
	}
	return incoming
}
