package table

import (
	"context"
	"fmt"
	"regexp"
	"slices"
)

// View is a question that people ask often, under a name that stays while copies come and go. In Query a
// table of the model stands as {table}, a column of instants as {time:column}, which people can read.
type View struct{ Name, Query string }

var viewPlaceholder = regexp.MustCompile(`\{(time:)?([a-z_.]+)\}`)

// viewQuery is the view's question where the tables are as the prefix says.
func (l dialect) viewQuery(v View, prefix string) string {
	return viewPlaceholder.ReplaceAllStringFunc(v.Query, func(placeholder string) string {
		m := viewPlaceholder.FindStringSubmatch(placeholder)
		if m[1] == "" {
			return prefix + m[2]
		}
		return fmt.Sprintf(l.timestampExpr, m[2])
	})
}

// defaultView is the question that a view of a whole table answers.
func (d Def) defaultView() View {
	query := "select "
	for i, c := range d.Columns {
		if i > 0 {
			query += ", "
		}
		if c.Type == Timestamp {
			query += "{time:" + c.Name + "} as "
		}
		query += c.Name
	}
	return View{d.ViewName, query + " from {" + d.Name + "}"}
}

// createViews makes the views of a model whose tables are where the prefix says.
func (tx *Tx) createViews(ctx context.Context, m ReadModel, prefix string) error {
	views := slices.Clone(m.Views)
	for _, d := range m.Tables {
		if d.ViewName != "" {
			views = append(views, d.defaultView())
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
