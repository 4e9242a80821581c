package sqldb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"lieudit/schemas/table"
)

// GenerationState is what a copy of a read model is for.
type GenerationState string

const (
	Creating GenerationState = "fresh"    // its tables are being made
	Building GenerationState = "building" // being filled; nobody is answered from it yet
	Serving  GenerationState = "serving"  // what questions are answered from
	Retired  GenerationState = "retired"  // a later copy serves; dropped when nobody reads it any more
	Dropped  GenerationState = "dropped"  // gone; its number is never given again
)

// Generation is one filling of a read model's tables: a SQLite file or a Postgres schema of its own.
type Generation struct {
	Name         string // register-v2-g2
	Model        string
	Version      int64
	Number       int64
	State        GenerationState
	Created      table.Instant
	ServingSince table.Instant // when it began to serve
}

// IsOf says whether the copy is one of the model, in this version.
func (c Generation) IsOf(m table.ReadModel) bool {
	return c.Model == m.Name && c.Version == int64(m.Version)
}

func (c Generation) schemaName() string { return strings.ReplaceAll(c.Name, "-", "_") }

var generationTable = table.Table[Generation]{
	Def: table.Def{Name: "copy", KeyColumns: 1, Columns: []table.Column{
		{Name: "name", Type: table.Text}, {Name: "model", Type: table.Text}, {Name: "version", Type: table.Integer}, {Name: "generation", Type: table.Integer},
		{Name: "state", Type: table.Text}, {Name: "made", Type: table.Timestamp}, {Name: "served", Type: table.Timestamp},
	}},
	Fields: func(c *Generation) []any {
		return []any{&c.Name, &c.Model, &c.Version, &c.Number, (*string)(&c.State), &c.Created, &c.ServingSince}
	},
}

// leaseTable says which instance uses which copy, until when unless it says so again.
var leaseTable = table.Def{Name: "holder", KeyColumns: 2, Columns: []table.Column{{Name: "copy", Type: table.Text}, {Name: "instance", Type: table.Text}, {Name: "until", Type: table.Timestamp}}}

// Generations are all copies that are not dropped, oldest first.
func (s *Registry) Generations(ctx context.Context) ([]Generation, error) {
	db, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.renewLeases(ctx); err != nil {
		return nil, err
	}
	return Select(ctx, db, generationTable, "where state <> 'dropped' order by model, version, generation")
}

// BuildGeneration makes a fresh copy of a model and takes the place of another that is being built. With unless it
// does so only when there is no copy at all that serves or is being built, and gives the one there is.
func (s *Registry) BuildGeneration(ctx context.Context, m table.ReadModel, unlessExists bool) (Generation, error) {
	c, err := s.reserveNumber(ctx, m, unlessExists)
	if err != nil || c.State != Creating {
		return c, err
	}
	if err := s.createGenerationTables(ctx, m, c); err != nil {
		return Generation{}, err
	}
	built, err := s.startBuilding(ctx, m, c, unlessExists)
	if err == nil && built.Name != c.Name { // another instance was faster
		err = s.updateRegistry(ctx, func(tx *Tx) error { return s.dropGeneration(ctx, tx, c) })
	}
	return built, err
}

// startBuilding has a fresh copy filled in the place of one that is being built, or gives the one there is.
func (s *Registry) startBuilding(ctx context.Context, m table.ReadModel, c Generation, unlessExists bool) (Generation, error) {
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		if existing, err := findLive(ctx, tx, m); err != nil || unlessExists && existing.Name != "" {
			c = existing
			return err
		}
		_, err := tx.Exec(ctx, "update copy set state = case when name = ? then 'building' else 'retired' end where name = ? or model = ? and version = ? and state = 'building'",
			c.Name, c.Name, m.Name, m.Version)
		c.State = Building
		return err
	})
	return c, err
}

// reserveNumber enters a fresh copy into the registry, under a reserveNumber that was never given. With unless it may give the living one.
func (s *Registry) reserveNumber(ctx context.Context, m table.ReadModel, unlessExists bool) (Generation, error) {
	c := Generation{Model: m.Name, Version: int64(m.Version), State: Creating}
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		if existing, err := findLive(ctx, tx, m); err != nil || unlessExists && existing.Name != "" {
			c = existing
			return err
		}
		row := tx.QueryRow(ctx, "select coalesce(max(generation), 0) + 1, "+tx.db.Now()+" from copy where model = ? and version = ?", m.Name, m.Version)
		if err := row.Scan(&c.Number, &c.Created); err != nil {
			return tx.db.wrapError(ctx, err)
		}
		c.Name = fmt.Sprintf("%s-v%d-g%d", m.Name, m.Version, c.Number)
		return Upsert(ctx, tx, generationTable, []Generation{c})
	})
	return c, err
}

// findLive is the model's copy that serves, else the one that is being built, else none.
func findLive(ctx context.Context, tx *Tx, m table.ReadModel) (Generation, error) {
	found, err := Select(ctx, tx, generationTable, "where model = ? and version = ? and state in ('serving', 'building') order by state desc", m.Name, m.Version)
	if err != nil || len(found) == 0 {
		return Generation{}, err
	}
	return found[0], nil
}

// createGenerationTables makes the tables of a fresh copy.
func (s *Registry) createGenerationTables(ctx context.Context, m table.ReadModel, c Generation) error {
	db, release, err := s.OpenGeneration(ctx, c)
	if err != nil {
		return err
	}
	defer release()
	return db.createGenerationTables(ctx, m, c)
}

func (db *DB) createGenerationTables(ctx context.Context, m table.ReadModel, c Generation) error {
	if err := db.Create(ctx, append([]table.Def{table.Checkpoints.Def, table.AccountStatuses.Def}, m.Tables...)...); err != nil {
		return err
	}
	return db.RunInTx(ctx, func(tx *Tx) error {
		if err := Upsert(ctx, tx, table.Checkpoints, []table.Checkpoint{{Generation: c.Name}}); err != nil || db.dialect.namedSchemas {
			return err
		}
		return tx.createViews(ctx, m, "") // in a file of its own the views are with the tables
	})
}

// PromoteGeneration makes a copy the one that answers, and retires the one that did.
func (s *Registry) PromoteGeneration(ctx context.Context, m table.ReadModel, c Generation) error {
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		n, err := tx.Exec(ctx, "update copy set state = 'serving', served = "+tx.db.Now()+" where name = ? and state = 'building'", c.Name)
		if err != nil || n == 0 {
			return err
		}
		if _, err = tx.Exec(ctx, "update copy set state = 'retired' where model = ? and version = ? and state = 'serving' and name <> ?", c.Model, c.Version, c.Name); err != nil {
			return err
		}
		return s.updateViews(ctx, tx, m, c)
	})
	if err == nil {
		s.linkServingFile(c)
		s.servingCacheOf(m).isStale.Store(true)
	}
	return err
}

// updateViews lets the views for people read the copy, unless a later version serves already.
func (s *Registry) updateViews(ctx context.Context, tx *Tx, m table.ReadModel, c Generation) error {
	if !tx.db.dialect.namedSchemas {
		return nil
	}
	later := 0
	row := tx.QueryRow(ctx, "select count(*) from copy where model = ? and version > ? and state = 'serving'", c.Model, c.Version)
	if err := row.Scan(&later); err != nil || later > 0 {
		return err
	}
	return tx.createViews(ctx, m, c.schemaName()+".")
}

// Prune drops the copies that no one uses: retired ones, and those of versions before the models'. It gives
// their names.
func (s *Registry) Prune(ctx context.Context, models ...table.ReadModel) ([]string, error) {
	var unused []Generation
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		all, err := Select(ctx, tx, generationTable, "where state <> 'dropped' and not exists (select 1 from holder where copy = name and until > "+tx.db.Now()+") order by name")
		if err != nil {
			return err
		}
		for _, c := range all {
			if !isOutdated(c, models) {
				continue
			}
			if err := s.dropGeneration(ctx, tx, c); err != nil {
				return err
			}
			unused = append(unused, c)
		}
		return nil
	})
	names := make([]string, len(unused))
	for i, c := range unused {
		names[i] = c.Name
	}
	return names, err
}

func isOutdated(c Generation, models []table.ReadModel) bool {
	for _, m := range models {
		if c.Model == m.Name {
			return c.Version < int64(m.Version) ||
				c.Version == int64(m.Version) && (c.State == Retired || c.State == Creating)
		}
	}
	return false
}

// dropGeneration drops a copy. A query of somebody who does not know the registry is not waited for long: the whole registry
// would wait.
func (s *Registry) dropGeneration(ctx context.Context, tx *Tx, c Generation) error {
	if _, err := tx.Exec(ctx, "update copy set state = 'dropped' where name = ?", c.Name); err != nil {
		return err
	}
	if tx.db.dialect.namedSchemas {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "drop schema if exists "+c.schemaName()+" cascade")
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(s.databaseAddress(c.Name) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

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
