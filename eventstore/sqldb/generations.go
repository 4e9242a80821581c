package sqldb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"lieudit/schemas/table"
)

// GenerationState is the stage of a generation:
//
//	Creating ── its tables are made ──► Building ── PromoteGeneration ──► Serving ── another one is promoted ──► Retired
//	                                       │ another one is built                                                  │
//	                                       └─────────────────► Retired ── DropSuperseded, Prune ──► Dropped ◄──────┘
//
// One whose tables cannot be made is Dropped, at once if possible. If the program ends first, DropSuperseded or Prune drops it. At most one
// generation of a model and version serves, and at most one is being built.
type GenerationState string

const (
	Creating GenerationState = "fresh"    // its tables are being made
	Building GenerationState = "building" // it is being filled; nothing is read from it yet
	Serving  GenerationState = "serving"  // queries read it
	Retired  GenerationState = "retired"  // another generation serves; it is dropped when nobody reads it any more
	Dropped  GenerationState = "dropped"  // its tables are gone; its number is never used again
)

// Generation is one filling of a read model's tables: a SQLite file or a Postgres schema of its own. A read model that
// is rebuilt gets another generation, and the old one serves until that has caught up.
type Generation struct {
	Name         string // register-v2-g2
	Model        string
	Version      int64
	Number       int64
	State        GenerationState
	Created      table.Instant
	ServingSince table.Instant // zero before
}

// IsOf reports whether it is a generation of the model, in the model's version.
func (g Generation) IsOf(m table.ReadModel) bool {
	return g.Model == m.Name && g.Version == int64(m.Version)
}

// schemaName is the generation's schema on Postgres: register_v2_g2.
func (g Generation) schemaName() string { return strings.ReplaceAll(g.Name, "-", "_") }

// generationTable is the registry's table of generations. Its SQL names are frozen: "copy" is a generation, "made" is
// Created and "served" is ServingSince.
var generationTable = table.Table[Generation]{
	Def: table.Def{Name: "copy", KeyColumns: 1, Columns: []table.Column{
		{Name: "name", Type: table.Text}, {Name: "model", Type: table.Text}, {Name: "version", Type: table.Integer}, {Name: "generation", Type: table.Integer},
		{Name: "state", Type: table.Text}, {Name: "made", Type: table.Timestamp}, {Name: "served", Type: table.Timestamp},
	}},
	Fields: func(g *Generation) []any {
		return []any{&g.Name, &g.Model, &g.Version, &g.Number, (*string)(&g.State), &g.Created, &g.ServingSince}
	},
}

// leaseTable records which instance uses which generation, and until when unless the lease is renewed.
var leaseTable = table.Def{Name: "holder", KeyColumns: 2, Columns: []table.Column{{Name: "copy", Type: table.Text}, {Name: "instance", Type: table.Text}, {Name: "until", Type: table.Timestamp}}}

// Generations are all generations that are not dropped, the oldest of each model first. It occasionally renews this
// instance's leases.
func (s *Registry) Generations(ctx context.Context) ([]Generation, error) {
	db, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.renewLeases(ctx); err != nil {
		return nil, err
	}
	all, err := Select(ctx, db, generationTable, "where state <> 'dropped' order by model, version, generation")
	return all, s.noteRegistryDamage(err)
}

// BuildGeneration makes the tables of a new generation, which replaces one that is being built. With unlessExists it returns
// the generation that serves or is being built, and makes a new one only if there is none. Several instances may call it at
// once: with unlessExists all get the same generation.
//
// The tables are made outside the registry's transaction, for which all instances would wait. So with unlessExists it looks for a
// generation twice, before and after, and drops its own if another instance was faster.
//
// A generation whose tables cannot be made is dropped. On a full disk that may fail as well: then no new one is begun until that one is
// dropped, so that even a long outage leaves at most one of each model and instance.
func (s *Registry) BuildGeneration(ctx context.Context, m table.ReadModel, unlessExists bool) (Generation, error) {
	if err := s.dropUnfinished(ctx, m); err != nil {
		return Generation{}, err
	}
	g, err := s.reserveNumber(ctx, m, unlessExists)
	if err != nil || g.State != Creating {
		return g, err
	}
	built := Generation{}
	if err = s.createGenerationTables(ctx, m, g); err == nil {
		built, err = s.startBuilding(ctx, m, g, unlessExists)
	}
	if err == nil && built.Name == g.Name {
		return built, nil
	}
	s.setUnfinished(g)                                                          // or another instance was faster
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout) // although nobody waits for the generation any more
	defer cancel()
	return built, errors.Join(err, s.dropUnfinished(ctx, m))
}

// dropTimeout bounds the attempt to drop a generation that follows at once. Later ones have the time of their callers.
const dropTimeout = 2 * time.Second

// setUnfinished notes a generation of this instance that will not be built.
func (s *Registry) setUnfinished(g Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unfinished[g.Name] = g
}

// dropUnfinished drops the generations of a model that this instance has begun and will not build. One that has left Creating stays: a
// commit that seemed to fail was made all the same, and others fill or read it by now.
func (s *Registry) dropUnfinished(ctx context.Context, m table.ReadModel) error {
	s.mu.Lock()
	all := maps.Clone(s.unfinished)
	s.mu.Unlock()
	for name, g := range all {
		if !g.IsOf(m) {
			continue
		}
		err := s.updateRegistry(ctx, func(tx *Tx) error {
			n, err := tx.Exec(ctx, "update {copy} set state = 'dropped' where name = ? and state = 'fresh'", name)
			if err != nil || n == 0 {
				return err
			}
			return s.dropTables(ctx, tx, g)
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.unfinished, name)
		s.mu.Unlock()
		s.deleteUnservedRows(ctx, g)
	}
	return nil
}

// deleteUnservedRows deletes the rows of dropped generations that never served and have lower numbers than g: while there is no right to
// make tables, say, several attempts a second would leave one each. The row of g stays, so that no number is used again. Where this fails,
// it leaves rows that harm nobody.
func (s *Registry) deleteUnservedRows(ctx context.Context, g Generation) {
	s.updateRegistry(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "delete from {copy} where model = ? and version = ? and generation < ? and state = 'dropped' and served = 0", g.Model, g.Version, g.Number)
		return err
	})
}

// startBuilding makes a generation whose tables exist the one that is being built, and retires the previous one. With
// unlessExists it returns the one that another instance has made meanwhile.
func (s *Registry) startBuilding(ctx context.Context, m table.ReadModel, g Generation, unlessExists bool) (Generation, error) {
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		if existing, err := findLive(ctx, tx, m); err != nil || unlessExists && existing.Name != "" {
			g = existing
			return err
		}
		if _, err := tx.Exec(ctx, "update {copy} set state = 'retired' where model = ? and version = ? and state = 'building'", m.Name, m.Version); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, "update {copy} set state = 'building' where name = ? and state = 'fresh'", g.Name)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s was dropped", g.Name)
		}
		g.State = Building
		return err
	})
	return g, err
}

// reserveNumber enters a new generation into the registry, under a number that was never used. With unlessExists it
// returns the one that serves or is being built.
func (s *Registry) reserveNumber(ctx context.Context, m table.ReadModel, unlessExists bool) (Generation, error) {
	g := Generation{Model: m.Name, Version: int64(m.Version), State: Creating}
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		if existing, err := findLive(ctx, tx, m); err != nil || unlessExists && existing.Name != "" {
			g = existing
			return err
		}
		row := tx.QueryRow(ctx, "select coalesce(max(generation), 0) + 1, "+tx.db.Now()+" from {copy} where model = ? and version = ?", m.Name, m.Version)
		if err := row.Scan(&g.Number, &g.Created); err != nil {
			return tx.db.wrapError(ctx, err)
		}
		g.Number = max(g.Number, s.highestNumber(m)+1)
		g.Name = fmt.Sprintf("%s-v%d-g%d", m.Name, m.Version, g.Number)
		return Upsert(ctx, tx, generationTable, []Generation{g})
	})
	return g, err
}

// findLive is the model's generation that serves, otherwise the one that is being built, otherwise the zero Generation.
func findLive(ctx context.Context, tx *Tx, m table.ReadModel) (Generation, error) {
	found, err := Select(ctx, tx, generationTable, "where model = ? and version = ? and state in ('serving', 'building') order by state desc", m.Name, m.Version)
	if err != nil || len(found) == 0 {
		return Generation{}, err
	}
	return found[0], nil
}

// createGenerationTables opens a new generation and makes its tables.
func (s *Registry) createGenerationTables(ctx context.Context, m table.ReadModel, g Generation) error {
	db, release, err := s.OpenGeneration(ctx, g)
	if err != nil {
		return err
	}
	defer release()
	return db.createGenerationTables(ctx, m, g)
}

// createGenerationTables makes the model's tables and those that every generation has, with a checkpoint at 0.
func (db *DB) createGenerationTables(ctx context.Context, m table.ReadModel, g Generation) error {
	tables := append([]table.Def{table.Checkpoints.Def, table.AccountStatuses.Def}, m.Tables...)
	if !db.ScrubsAtOnce() {
		tables = append(tables, ScrubTable)
	}
	if err := db.Create(ctx, tables...); err != nil {
		return err
	}
	return db.RunInTx(ctx, func(tx *Tx) error {
		if err := Upsert(ctx, tx, table.Checkpoints, []table.Checkpoint{{Generation: g.Name}}); err != nil || db.dialect.namedSchemas {
			return err
		}
		return tx.createViews(ctx, m, "") // a generation with a file of its own has the views next to the tables
	})
}

// PromoteGeneration makes a generation that is being built the serving one, and retires the previous one. It does nothing if
// the generation is no longer being built.
func (s *Registry) PromoteGeneration(ctx context.Context, m table.ReadModel, g Generation) error {
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		n, err := tx.Exec(ctx, "update {copy} set state = 'serving', served = "+tx.db.Now()+" where name = ? and state = 'building'", g.Name)
		if err != nil || n == 0 {
			return err
		}
		if _, err = tx.Exec(ctx, "update {copy} set state = 'retired' where model = ? and version = ? and state = 'serving' and name <> ?", g.Model, g.Version, g.Name); err != nil {
			return err
		}
		return s.updateViews(ctx, tx, m, g)
	})
	if err == nil {
		s.linkServingFile(g)
		s.servingCacheOf(m).isStale.Store(true)
		s.finishReplacement(ctx, g)
	}
	return err
}

// finishReplacement notes that a model's damaged generations are replaced, and removes their files. If that fails, the next
// start removes them.
func (s *Registry) finishReplacement(ctx context.Context, g Generation) {
	s.markReplaced(g)
	if db, err := s.database(ctx); err == nil {
		err = s.removeOrphans(ctx, db)
		if err != nil {
			s.Log.Warn("files of read models that nobody reads could not be removed", "reason", err)
		}
	}
}

// updateViews points the views for people at a generation, unless a later version of the model serves already.
func (s *Registry) updateViews(ctx context.Context, tx *Tx, m table.ReadModel, g Generation) error {
	if !tx.db.dialect.namedSchemas {
		return nil
	}
	later := 0
	row := tx.QueryRow(ctx, "select count(*) from {copy} where model = ? and version > ? and state = 'serving'", g.Model, g.Version)
	if err := row.Scan(&later); err != nil || later > 0 {
		return err
	}
	return tx.createViews(ctx, m, g.schemaName()+".")
}

// Prune drops the generations of models that nobody holds a lease on and nobody will need (see isOutdated). It returns
// their names.
func (s *Registry) Prune(ctx context.Context, models ...table.ReadModel) ([]string, error) {
	return s.dropUnused(ctx, func(all []Generation) []Generation {
		return slices.DeleteFunc(all, func(g Generation) bool { return !isOutdated(g, models) })
	})
}

// DropSuperseded drops the superseded generations of a model that nobody holds a lease on (see Superseded), and returns their names.
func (s *Registry) DropSuperseded(ctx context.Context, m table.ReadModel) ([]string, error) {
	return s.dropUnused(ctx, func(all []Generation) []Generation { return Superseded(all, m) })
}

// Superseded selects from all generations those that no reader of the model goes back to: of its version those that are retired, except
// the last that served before the serving one, and those that were begun before the serving one and never finished. The last that
// served stays, since other instances may be about to read it. If no generation serves, it returns none. Other versions belong to other
// programs, which may still run.
func Superseded(all []Generation, m table.ReadModel) (superseded []Generation) {
	var serving, predecessor Generation
	for _, g := range all {
		switch {
		case !g.IsOf(m):
		case g.State == Serving:
			serving = g
		case g.State == Creating || g.State == Retired:
			superseded = append(superseded, g)
			if g.ServingSince != 0 && g.Number > predecessor.Number { // numbers follow the order of serving, whatever the clock did
				predecessor = g
			}
		}
	}
	return slices.DeleteFunc(superseded, func(g Generation) bool {
		return serving.Name == "" || g.Name == predecessor.Name || g.State == Creating && g.Number > serving.Number
	})
}

// dropUnused drops those of all generations that choose returns and nobody holds a lease on, and returns their names. A lease
// from before the database's clock was set back counts for leaseDuration more: its holder may be alive.
func (s *Registry) dropUnused(ctx context.Context, choose func([]Generation) []Generation) ([]string, error) {
	var dropped []string
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		dropped = nil
		if err := tx.ShortenLeases(ctx, leaseTable, leaseDuration); err != nil {
			return err
		}
		all, err := Select(ctx, tx, generationTable, "where state <> 'dropped' order by name")
		if err != nil {
			return err
		}
		leased, err := listLeased(ctx, tx)
		if err != nil {
			return err
		}
		for _, g := range choose(all) {
			if leased[g.Name] {
				continue
			}
			if err := s.dropGeneration(ctx, tx, g); err != nil {
				return err
			}
			dropped = append(dropped, g.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err // nothing was dropped: the transaction is undone, and a file that is gone already is not an error next time
	}
	return dropped, nil
}

// listLeased returns the names of the generations that an instance holds a lease on.
func listLeased(ctx context.Context, tx *Tx) (map[string]bool, error) {
	rows, err := tx.Query(ctx, "select distinct copy from {holder} where until > "+tx.db.Now())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	leased := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		leased[name] = true
	}
	return leased, rows.Err()
}

// isOutdated reports whether nobody will need a generation: one of an older version, a retired one, or one whose creation was
// interrupted. Those of later versions belong to a newer binary.
func isOutdated(g Generation, models []table.ReadModel) bool {
	for _, m := range models {
		if g.Model == m.Name {
			return g.Version < int64(m.Version) ||
				g.Version == int64(m.Version) && (g.State == Retired || g.State == Creating)
		}
	}
	return false
}

// dropGeneration drops a generation's tables. It waits at most 2 s for queries on them without a lease, since it holds the
// registry's lock meanwhile.
func (s *Registry) dropGeneration(ctx context.Context, tx *Tx, g Generation) error {
	if _, err := tx.Exec(ctx, "update {copy} set state = 'dropped' where name = ?", g.Name); err != nil {
		return err
	}
	return s.dropTables(ctx, tx, g)
}

// dropTables drops a generation's schema, or removes its files.
func (s *Registry) dropTables(ctx context.Context, tx *Tx, g Generation) error {
	if tx.db.dialect.namedSchemas {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "drop schema if exists "+g.schemaName()+" cascade")
		return err
	}
	for _, suffix := range sqliteSuffixes() {
		if err := os.Remove(s.databaseAddress(g.Name) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// viewPlaceholder is a table or a time in the query of a table.View: {site}, {time:created}.
var viewPlaceholder = regexp.MustCompile(`\{(time:)?([a-z_.]+)\}`)

// viewQuery is a view's query with the names of the tables, each after the prefix, and with times for people.
func (l dialect) viewQuery(v table.View, prefix string) string {
	return viewPlaceholder.ReplaceAllStringFunc(v.Query, func(placeholder string) string {
		m := viewPlaceholder.FindStringSubmatch(placeholder)
		if m[1] == "" {
			return prefix + m[2]
		}
		return fmt.Sprintf(l.timestampExpr, m[2])
	})
}

// defaultView shows a whole table.
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

// createViews makes the views of a model whose tables have a prefix, such as a schema and a dot.
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

// replaceView makes a view in place of the one with that name. Rights that people have on the old one stay, unless its
// columns change: then it must be dropped.
func (tx *Tx) replaceView(ctx context.Context, name, query string) error {
	if _, err := tx.Exec(ctx, "savepoint before_view"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, tx.db.dialect.createView+"{"+name+"} as "+query); err == nil {
		return nil
	}
	for _, statement := range []string{"rollback to savepoint before_view", "drop view if exists {" + name + "}", "create view {" + name + "} as " + query} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
