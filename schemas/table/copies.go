package table

import (
	"context"
	"fmt"
	"strings"
)

// State is what a copy of a read model is for.
type State string

const (
	Fresh    State = "fresh"    // its tables are being made
	Building State = "building" // being filled; nobody is answered from it yet
	Serving  State = "serving"  // what questions are answered from
	Retired  State = "retired"  // a later copy serves; dropped when nobody reads it any more
	Dropped  State = "dropped"  // gone; its number is never given again
)

// Copy is one filling of a read model's tables: a SQLite file or a Postgres schema of its own.
type Copy struct {
	Name       string // register-v2-g2
	Model      string
	Version    int64
	Generation int64
	State      State
	Made       Instant
	Served     Instant // when it began to serve
}

// Of says whether the copy is one of the model, in this version.
func (c Copy) Of(m Model) bool { return c.Model == m.Name && c.Version == int64(m.Version) }

func (c Copy) schema() string { return strings.ReplaceAll(c.Name, "-", "_") }

var copies = Table[Copy]{
	Def: Def{Name: "copy", Key: 1, Columns: []Column{
		{"name", Text}, {"model", Text}, {"version", Integer}, {"generation", Integer},
		{"state", Text}, {"made", Moment}, {"served", Moment},
	}},
	Fields: func(c *Copy) []any {
		return []any{&c.Name, &c.Model, &c.Version, &c.Generation, (*string)(&c.State), &c.Made, &c.Served}
	},
}

// holders says which instance uses which copy, until when unless it says so again.
var holders = Def{Name: "holder", Key: 2, Columns: []Column{{"copy", Text}, {"instance", Text}, {"until", Moment}}}

// Checkpoint is how far a copy has got and who fills it. It is in the copy itself, so that it changes in the same
// transaction as the rows.
type Checkpoint struct {
	Copy     string
	Log      string // UUID of the log
	Position int64
	Event    string  // id of the event at the position
	Recorded Instant // when the last event was recorded
	Owner    string  // the instance that fills the copy, "" for none
	Until    Instant // how long it does so unless it says so again
	Reason   string  // why it cannot go on, "" when it can
}

// Checkpoints is the table of one row that every copy has.
var Checkpoints = Table[Checkpoint]{
	Def: Def{Name: "checkpoint", Key: 1, Columns: []Column{
		{"copy", Text}, {"log", Text}, {"position", Integer}, {"event", Text},
		{"recorded", Moment}, {"owner", Text}, {"until", Moment}, {"reason", Text},
	}},
	Fields: func(c *Checkpoint) []any {
		return []any{&c.Copy, &c.Log, &c.Position, &c.Event, &c.Recorded, &c.Owner, &c.Until, &c.Reason}
	},
}

// Copies are all copies that are not dropped, oldest first.
func (s *Shelf) Copies(ctx context.Context) ([]Copy, error) {
	registry, err := s.registry(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	return Select(ctx, registry, copies, "where state <> 'dropped' order by model, version, generation")
}

// Build makes a fresh copy of a model and takes the place of another that is being built. With unless it
// does so only when there is no copy at all that serves or is being built, and gives the one there is.
func (s *Shelf) Build(ctx context.Context, m Model, unless bool) (Copy, error) {
	c, err := s.number(ctx, m, unless)
	if err != nil || c.State != Fresh {
		return c, err
	}
	if err := s.furnish(ctx, m, c); err != nil {
		return Copy{}, err
	}
	built, err := s.enlist(ctx, m, c, unless)
	if err == nil && built.Name != c.Name { // another instance was faster
		err = s.change(ctx, func(tx *Tx) error { return s.discard(ctx, tx, c) })
	}
	return built, err
}

// enlist has a fresh copy filled in the place of one that is being built, or gives the one there is.
func (s *Shelf) enlist(ctx context.Context, m Model, c Copy, unless bool) (Copy, error) {
	err := s.change(ctx, func(tx *Tx) error {
		if there, err := living(ctx, tx, m); err != nil || unless && there.Name != "" {
			c = there
			return err
		}
		_, err := tx.Exec(ctx, "update copy set state = case when name = ? then 'building' else 'retired' end where name = ? or model = ? and version = ? and state = 'building'",
			c.Name, c.Name, m.Name, m.Version)
		c.State = Building
		return err
	})
	return c, err
}

// number enters a fresh copy into the registry, under a number that was never given. With unless it may give the living one.
func (s *Shelf) number(ctx context.Context, m Model, unless bool) (Copy, error) {
	c := Copy{Model: m.Name, Version: int64(m.Version), State: Fresh}
	err := s.change(ctx, func(tx *Tx) error {
		if there, err := living(ctx, tx, m); err != nil || unless && there.Name != "" {
			c = there
			return err
		}
		row := tx.QueryRow(ctx, "select coalesce(max(generation), 0) + 1, "+tx.db.Now()+" from copy where model = ? and version = ?", m.Name, m.Version)
		if err := row.Scan(&c.Generation, &c.Made); err != nil {
			return tx.db.failed(ctx, err)
		}
		c.Name = fmt.Sprintf("%s-v%d-g%d", m.Name, m.Version, c.Generation)
		return Upsert(ctx, tx, copies, []Copy{c})
	})
	return c, err
}

// living is the model's copy that serves, else the one that is being built, else none.
func living(ctx context.Context, tx *Tx, m Model) (Copy, error) {
	found, err := Select(ctx, tx, copies, "where model = ? and version = ? and state in ('serving', 'building') order by state desc", m.Name, m.Version)
	if err != nil || len(found) == 0 {
		return Copy{}, err
	}
	return found[0], nil
}

// furnish makes the tables of a fresh copy.
func (s *Shelf) furnish(ctx context.Context, m Model, c Copy) error {
	db, release, err := s.Use(ctx, c)
	if err != nil {
		return err
	}
	defer release()
	return db.furnish(ctx, m, c)
}

func (db *DB) furnish(ctx context.Context, m Model, c Copy) error {
	if err := db.Create(ctx, append([]Def{Checkpoints.Def, AccountStatuses.Def}, m.Tables...)...); err != nil {
		return err
	}
	return db.Tx(ctx, func(tx *Tx) error {
		if err := Upsert(ctx, tx, Checkpoints, []Checkpoint{{Copy: c.Name}}); err != nil || db.arrays() {
			return err
		}
		return tx.show(ctx, m, "") // in a file of its own the views are with the tables
	})
}

// Serve makes a copy the one that answers, and retires the one that did.
func (s *Shelf) Serve(ctx context.Context, m Model, c Copy) error {
	err := s.change(ctx, func(tx *Tx) error {
		n, err := tx.Exec(ctx, "update copy set state = 'serving', served = "+tx.db.Now()+" where name = ? and state = 'building'", c.Name)
		if err != nil || n == 0 {
			return err
		}
		if _, err = tx.Exec(ctx, "update copy set state = 'retired' where model = ? and version = ? and state = 'serving' and name <> ?", c.Model, c.Version, c.Name); err != nil {
			return err
		}
		return s.present(ctx, tx, m, c)
	})
	if err == nil {
		s.link(c)
		s.readingOf(m).stale.Store(true)
	}
	return err
}

// present lets the views for people read the copy, unless a later version serves already.
func (s *Shelf) present(ctx context.Context, tx *Tx, m Model, c Copy) error {
	if !tx.db.dialect.numbered {
		return nil
	}
	later := 0
	row := tx.QueryRow(ctx, "select count(*) from copy where model = ? and version > ? and state = 'serving'", c.Model, c.Version)
	if err := row.Scan(&later); err != nil || later > 0 {
		return err
	}
	return tx.show(ctx, m, c.schema()+".")
}
