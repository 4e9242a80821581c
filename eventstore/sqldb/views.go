package sqldb

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"lieudit/schemas/table"
)

var viewPlaceholder = regexp.MustCompile(`\{(time:)?([a-z_.]+)\}`)

// viewQuery is the view's question where the tables are as the prefix says.
func (l dialect) viewQuery(v table.View, prefix string) string {
	return viewPlaceholder.ReplaceAllStringFunc(v.Query, func(placeholder string) string {
		m := viewPlaceholder.FindStringSubmatch(placeholder)
		if m[1] == "" {
			return prefix + m[2]
		}
		return fmt.Sprintf(l.timestampExpr, m[2])
	})
}

// defaultView is the question that a view of a whole table answers.
func defaultView(d table.Def) table.View {
	query := "select "
	for i, c := range d.Columns {
		if i > 0 {
			query += ", "
		}
		if c.Type == table.Timestamp {
			query += "{time:" + c.Name + "} as "
		}
		query += c.Name
	}
	return table.View{Name: d.ViewName, Query: query + " from {" + d.Name + "}"}
}

// createViews makes the views of a model whose tables are where the prefix says.
func (tx *Tx) createViews(ctx context.Context, m table.ReadModel, prefix string) error {
	views := slices.Clone(m.Views)
	for _, d := range m.Tables {
		if d.ViewName != "" {
			views = append(views, defaultView(d))
		}
	}
	for _, v := range views {
		if err := tx.replaceView(ctx, v.Name, tx.db.dialect.viewQuery(v, prefix)); err != nil {
			return err
		}
	}
	return nil
}

// replaceView makes a view, in the place of the one of that name: people's rights on it stay, unless its columns change.
func (tx *Tx) replaceView(ctx context.Context, name, query string) error {
	if _, err := tx.Exec(ctx, "savepoint before_view"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, tx.db.dialect.createView+name+" as "+query); err == nil {
		return nil
	}
	for _, statement := range []string{"rollback to savepoint before_view", "drop view if exists " + name, "create view " + name + " as " + query} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
