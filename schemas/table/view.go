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

var placed = regexp.MustCompile(`\{(time:)?([a-z_.]+)\}`)

// query is the view's question where the tables are as the prefix says.
func (l dialect) query(v View, prefix string) string {
	return placed.ReplaceAllStringFunc(v.Query, func(place string) string {
		m := placed.FindStringSubmatch(place)
		if m[1] == "" {
			return prefix + m[2]
		}
		return fmt.Sprintf(l.instant, m[2])
	})
}

// shown is the question that a view of a whole table answers.
func (d Def) shown() View {
	q := "select "
	for i, c := range d.Columns {
		if i > 0 {
			q += ", "
		}
		if c.Type == Moment {
			q += "{time:" + c.Name + "} as "
		}
		q += c.Name
	}
	return View{d.View, q + " from {" + d.Name + "}"}
}

// show makes the views of a model whose tables are where the prefix says.
func (tx *Tx) show(ctx context.Context, m Model, prefix string) error {
	views := slices.Clone(m.Views)
	for _, d := range m.Tables {
		if d.View != "" {
			views = append(views, d.shown())
		}
	}
	for _, v := range views {
		if err := tx.view(ctx, v.Name, tx.db.dialect.query(v, prefix)); err != nil {
			return err
		}
	}
	return nil
}

// view makes a view, in the place of the one of that name: people's rights on it stay, unless its columns change.
func (tx *Tx) view(ctx context.Context, name, query string) error {
	if _, err := tx.Exec(ctx, "savepoint before_view"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, tx.db.dialect.view+name+" as "+query); err == nil {
		return nil
	}
	for _, statement := range []string{"rollback to savepoint before_view", "drop view if exists " + name, "create view " + name + " as " + query} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
