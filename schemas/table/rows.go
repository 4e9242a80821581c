package table

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Asked is what can be asked: a DB, or a running transaction.
type Asked interface {
	Query(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
	arrays() bool // whether an array can be passed
}

// Select reads whole rows. rest is what follows "from the table": where, order by, limit.
func Select[R any](ctx context.Context, a Asked, t Table[R], rest string, args ...any) ([]R, error) {
	rows, err := a.Query(ctx, "select "+t.names()+" from "+t.Name+" "+rest, args...)
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

// Load reads the rows whose key, in one column, is among keys. Keys without a row are left out.
func Load[R any](ctx context.Context, a Asked, t Table[R], keys []string) ([]R, error) {
	column := t.Columns[0].Name
	if len(keys) == 0 {
		return nil, nil
	}
	if a.arrays() {
		return Select(ctx, a, t, "where "+column+" = any(?)", keys)
	}
	var found []R
	for len(keys) > 0 { // a statement has only so many placeholders
		n := group(len(keys))
		args := make([]any, n)
		for i, k := range keys[:n] {
			args[i] = k
		}
		rows, err := Select(ctx, a, t, "where "+column+" in (?"+strings.Repeat(", ?", n-1)+")", args...)
		if err != nil {
			return nil, err
		}
		found, keys = append(found, rows...), keys[n:]
	}
	return found, nil
}

// Upsert writes whole rows: new ones are added, those whose key is there are replaced. No key may come twice.
func Upsert[R any](ctx context.Context, tx *Tx, t Table[R], rows []R) error {
	if len(rows) > 0 && tx.db.dialect.numbered {
		return upsertArrays(ctx, tx, t, rows)
	}
	for len(rows) > 0 {
		n := group(len(rows))
		same := len(rows) / n * n // rows that go in groups of that size
		if err := upsertGroups(ctx, tx, t, rows[:same], n); err != nil {
			return err
		}
		rows = rows[same:]
	}
	return nil
}

// upsertGroups writes rows in groups of n with one statement, which is read once.
func upsertGroups[R any](ctx context.Context, tx *Tx, t Table[R], rows []R, n int) error {
	statement, err := tx.tx.PrepareContext(ctx, t.insert(n))
	if err != nil {
		return tx.db.failed(ctx, err)
	}
	defer statement.Close()
	args := make([]any, 0, n*len(t.Columns))
	for from := 0; from < len(rows); from += n {
		args = args[:0]
		for i := range rows[from : from+n] {
			args = append(args, t.Fields(&rows[from+i])...)
		}
		if _, err := statement.ExecContext(ctx, storable(args)...); err != nil {
			return tx.db.failed(ctx, err)
		}
	}
	return nil
}

// group is how many of n rows go into one statement: few different sizes, so that statements are the same again.
func group(n int) int {
	for _, size := range []int{200, 50, 10} {
		if n >= size {
			return size
		}
	}
	return n
}

func (d Def) insert(rows int) string {
	row := "(?" + strings.Repeat(", ?", len(d.Columns)-1) + ")"
	return "insert into " + d.Name + " (" + d.names() + ") values " +
		row + strings.Repeat(", "+row, rows-1) + d.upserted()
}

// upsertArrays passes each column as one array: one short statement for any number of rows.
func upsertArrays[R any](ctx context.Context, tx *Tx, t Table[R], rows []R) error {
	columns := make([]any, len(t.Columns))
	for i := range rows {
		for c, field := range t.Fields(&rows[i]) {
			columns[c] = appended(columns[c], field)
		}
	}
	casts := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		casts[i] = "?::" + tx.db.dialect.arrays[c.Type]
	}
	_, err := tx.Exec(ctx, "insert into "+t.Name+" ("+t.names()+") select * from unnest("+
		strings.Join(casts, ", ")+")"+t.upserted(), columns...)
	return err
}

func appended(column, field any) any {
	switch f := field.(type) {
	case *string:
		return add(column, *f)
	case *int64:
		return add(column, *f)
	case *Instant:
		return add(column, int64(*f))
	case *bool:
		return add(column, *f)
	case *[]byte:
		return add(column, *f)
	}
	return column
}

func add[T any](column any, value T) any {
	values, _ := column.([]T)
	return append(values, value)
}
