package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// ownTables are tables of a generation that tell of its filling and not of the log.
var ownTables = []string{"checkpoint", "generation", "account_status"}

// checkRebuilds has every read model filled again, and compares the rows before and after. Nothing may be appended meanwhile.
func (w *World) checkRebuilds(ctx context.Context, people *customers.Customers) {
	sleep(ctx, settleTime/3) // until the last requests of the check before are in the rows
	core, usage := w.core.LastPosition(), w.usage.LastPosition()
	before := w.dumpReadModels(ctx)
	people.RebuildAll(ctx)
	sleep(ctx, settleTime)
	after := w.dumpReadModels(ctx)
	if core != w.core.LastPosition() || usage != w.usage.LastPosition() {
		return // a period was closed meanwhile, say: looked at another day
	}
	for model, rows := range before {
		if diff := firstDifference(rows, after[model]); diff != "" {
			w.Report(customers.RebuildsEqual, "%s: %s", model, diff)
		}
	}
}

// dumpReadModels returns the rows of every serving read model as texts, by the model's name.
func (w *World) dumpReadModels(ctx context.Context) map[string][]string {
	r := w.nodes[0].current()
	if r == nil {
		return nil
	}
	dumped := map[string][]string{}
	for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel, table.LocationsModel, table.UsageModel} {
		err := r.registry.Read(ctx, m, func(db *sqldb.DB) (err error) {
			dumped[m.Name], err = dumpRows(ctx, db)
			return err
		})
		if err != nil {
			w.Report(customers.ModelsMove, "%s cannot be read: %v", m.Name, err)
		}
	}
	return dumped
}

// dumpRows returns the rows of all tables of a SQLite file, in an order of their own.
func dumpRows(ctx context.Context, db *sqldb.DB) (all []string, err error) {
	tables, err := queryRows(ctx, db, "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
	if err != nil {
		return nil, err
	}
	for _, name := range tables {
		if slices.Contains(ownTables, name) {
			continue
		}
		query := `select * from "` + name + `"`
		if name == table.UsageLines.Name { // a line of no requests, all refunded, is as good as none: no view shows it
			query += " where requests <> 0"
		}
		rows, err := queryRows(ctx, db, query)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			all = append(all, name+": "+r)
		}
	}
	slices.Sort(all)
	return all, nil
}

// queryRows returns the rows of a query, each as one text.
func queryRows(ctx context.Context, db *sqldb.DB, query string) (all []string, err error) {
	rows, err := db.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprint(v)
		}
		all = append(all, strings.Join(texts, " | "))
	}
	return all, rows.Err()
}

// firstDifference names a row that only one of two sorted lists has.
func firstDifference(before, after []string) string {
	for _, row := range before {
		if _, found := slices.BinarySearch(after, row); !found {
			return fmt.Sprintf("%d rows before, %d after; only before there is %.400s", len(before), len(after), row)
		}
	}
	for _, row := range after {
		if _, found := slices.BinarySearch(before, row); !found {
			return fmt.Sprintf("%d rows before, %d after; only after there is %.400s", len(before), len(after), row)
		}
	}
	return ""
}

// rebuildInterval is after how many days all read models are filled again.
const rebuildInterval = 5
