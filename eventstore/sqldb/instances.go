package sqldb

import (
	"cmp"
	"context"
	"slices"

	"lieudit/schemas/table"
)

// Instance is an instance of the service that runs: it holds a lease, or its lease has not expired yet since it was killed.
type Instance struct {
	ID      string
	Program string // version of its program; "" for a program that does not say it
	Format  int64  // the highest format of the log that its program knows; 0 for a program that does not say it
	Until   table.Instant
}

// instanceTable says which program each instance runs, and until when unless that is renewed. It is a table of its own
// because programs before it share leaseTable with this one, and would not fill further columns. They are listed by their
// leases alone.
var instanceTable = table.Table[Instance]{
	Def: table.Def{Name: "instance", KeyColumns: 1, Columns: []table.Column{
		{Name: "instance", Type: table.Text}, {Name: "program", Type: table.Text}, {Name: "format", Type: table.Integer}, {Name: "until", Type: table.Timestamp},
	}},
	Fields: func(i *Instance) []any { return []any{&i.ID, &i.Program, &i.Format, &i.Until} },
}

// writeInstance writes or renews what this instance runs, and removes the instances that ended without saying so. It also
// shortens all leases of before the clock was set back, so that RunningInstances and ActiveInstances see which are renewed.
func (s *Registry) writeInstance(ctx context.Context, tx *Tx) error {
	for _, leases := range []table.Def{leaseTable, instanceTable.Def} {
		if err := tx.ShortenLeases(ctx, leases, leaseDuration); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "delete from {instance} where until < "+tx.db.Now()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "insert into {instance} (instance, program, format, until) values (?, ?, ?, "+tx.db.Now()+" + ?)"+onConflictClause(instanceTable.Def),
		s.InstanceID, s.Program, s.Format, leaseDuration.Microseconds())
	return err
}

// RunningInstances are the instances that run at the moment, sorted by ID, with what their programs say of themselves. An
// instance that never reached the database is not among them.
func (s *Registry) RunningInstances(ctx context.Context) ([]Instance, error) {
	leases, err := s.ActiveInstances(ctx)
	if err != nil {
		return nil, err
	}
	db, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	running, err := Select(ctx, db, instanceTable, "where until > "+db.Now())
	if err != nil {
		return nil, err
	}
	for _, i := range running {
		delete(leases, i.ID)
	}
	for id := range leases { // of programs that do not say what they are
		running = append(running, Instance{ID: id})
	}
	slices.SortFunc(running, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	return running, nil
}

// ActiveInstances are the instances, by InstanceID, that hold a lease on any generation at the moment.
func (s *Registry) ActiveInstances(ctx context.Context) (map[string]bool, error) {
	db, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, "select distinct instance from {holder} where until > "+db.Now())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var instance string
		if err := rows.Scan(&instance); err != nil {
			return nil, err
		}
		found[instance] = true
	}
	return found, rows.Err()
}
