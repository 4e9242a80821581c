package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"lieudit/cmd/bench/model"
	"lieudit/cmd/bench/simulation/customers"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// ownTables are tables about the filling of a generation, not about the log.
var ownTables = []string{"checkpoint", "generation", "account_status"}

// rebuildInterval is the number of days between rebuilds of all read models.
const rebuildInterval = 5

// checkRebuilds has every read model filled again, twice: the second time finds an instance whose supervisor has been stuck since the first.
// Nothing may be appended meanwhile.
func (w *World) checkRebuilds(ctx context.Context, people *customers.Customers) {
	clock.Sleep(ctx, settleTime/3) // until the rows include the last requests of the previous check
	for range 2 {
		w.checkRebuild(ctx, people)
	}
}

// projectionTime is the longest until an event is in the rows of every read model.
const projectionTime = time.Second

// rebuildLooks are the times after the start of a rebuild at which the rows are read: when generations begin to serve, and when all must serve.
var rebuildLooks = []time.Duration{0, 100 * time.Millisecond, time.Second, settleTime / 2}

// checkRebuild has every read model filled again, and checks that it serves the same rows throughout, in the end from a new generation.
func (w *World) checkRebuild(ctx context.Context, people *customers.Customers) {
	core, usage := w.core.LastPosition(), w.usage.LastPosition()
	clock.Sleep(ctx, projectionTime)
	generations, before := w.servingGenerations(ctx), w.dumpReadModels(ctx)
	if !people.RebuildAll(ctx) {
		return
	}
	begun := time.Now()
	for _, look := range rebuildLooks {
		clock.Sleep(ctx, time.Until(begun.Add(look)))
		after := w.dumpReadModels(ctx)
		if core != w.core.LastPosition() || usage != w.usage.LastPosition() {
			return // for example a period was closed meanwhile: checked another day
		}
		for model, rows := range before {
			if diff := firstDifference(rows, after[model]); diff != "" {
				w.Report(customers.RebuildsEqual, "%s, %v after a rebuild began: %s", model, look, diff)
			}
		}
	}
	for model, name := range w.servingGenerations(ctx) {
		if generations[model] == name {
			w.Report(customers.RebuildsEnd, "%s still serves from %s", model, name)
		}
	}
}

// readModels lists all read models.
var readModels = []table.ReadModel{table.AccountModel, table.AuditModel, table.LocationsModel, table.UsageModel}

// servingGenerations returns the serving generation of each read model, by the model's name.
func (w *World) servingGenerations(ctx context.Context) map[string]string {
	r := w.nodes[0].current()
	if r == nil {
		return nil
	}
	names := map[string]string{}
	for _, m := range readModels {
		g, err := r.registry.ServingGeneration(ctx, m)
		if err != nil {
			w.Report(customers.ModelsMove, "%s cannot be read: %v", m.Name, err)
			continue
		}
		names[m.Name] = g.Name
	}
	return names
}

// dumpReadModels returns the rows of every serving read model as text, by the model's name.
func (w *World) dumpReadModels(ctx context.Context) map[string][]string {
	r := w.nodes[0].current()
	if r == nil {
		return nil
	}
	dumped := map[string][]string{}
	for _, m := range readModels {
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

// dumpRows returns the rows of all tables of a SQLite file, in a fixed order.
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
		if name == table.UsageLines.Name { // a line without requests, all refunded, is equivalent to no line: no view shows it
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

// firstDifference returns a row that only one of two sorted lists has.
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

// checkpointInterval is the interval between readings of the checkpoints.
const checkpointInterval = 300 * time.Millisecond

// watchCheckpoints reports a generation of a read model whose checkpoint goes back, until ctx ends: then an instance that has lost its lease
// has written rows. Checks at quiet moments cannot see that, since the rows are written again in the right order.
func (w *World) watchCheckpoints(ctx context.Context) {
	latest, epoch := map[string]int64{}, w.epoch.Load()
	for turn := 0; clock.Sleep(ctx, checkpointInterval); turn++ {
		r := w.nodes[turn%len(w.nodes)].beginRequest()
		if r == nil {
			continue
		}
		reading, cancel := context.WithTimeout(ctx, checkpointInterval) // the calls of a dead instance end with their context
		positions := readPositions(reading, r.registry)
		cancel()
		r.requests.Done()
		if now := w.epoch.Load(); now != epoch { // the databases or the logs were replaced by older ones
			latest, epoch = map[string]int64{}, now
			continue
		}
		for generation, position := range positions {
			if position < latest[generation] {
				w.Report(customers.CheckpointsGoOn, "%s was at %d and is at %d", generation, latest[generation], position)
			}
			latest[generation] = position
		}
	}
}

// readPositions returns the positions of the serving generations, without those that cannot be read.
func readPositions(ctx context.Context, registry *sqldb.Registry) map[string]int64 {
	positions := map[string]int64{}
	for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel, table.LocationsModel, table.UsageModel} {
		_ = registry.Read(ctx, m, func(db *sqldb.DB) error {
			rows, err := sqldb.Select(ctx, db, table.Checkpoints, "")
			for _, c := range rows {
				positions[fmt.Sprint(m.Name, " ", c.Generation, " on ", c.Log)] = int64(c.Position)
			}
			return err
		})
	}
	return positions
}

// checkClosings compares what was billed for closed periods, when the usage log ended at a position, with the log: the total of the closing,
// and each correction after it. Answers alone do not show the difference: a request that is counted in a closed period is on the bill but
// missing from the closing.
func (w *World) checkClosings(ctx context.Context, billed *model.Model, end eventstore.Position) {
	totals := map[string]int64{} // by stream, of closed periods
	for s, err := range w.usage.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{"usage"}) {
		if err != nil {
			w.Report(customers.ClosedStays, "reading the usage log: %v", err)
			return
		}
		if s.Kind == eventstore.EventAppeared && s.Checkpoint.Position <= end {
			w.addToClosed(totals, s.Event)
		}
	}
	for stream, want := range totals {
		contract, first, _ := usagefold.ParseStreamName(stream)
		if got := billed.BilledOf(contract, first.String()); got != want {
			w.Report(customers.ClosedStays, "%s: %d are billed, %d were closed or corrected", stream, got, want)
		}
	}
}

// addToClosed adds an event about a closed period to its total. A second closing changes nothing.
func (w *World) addToClosed(totals map[string]int64, e eventstore.RecordedEvent) {
	_, isClosed := totals[e.Stream]
	isClosing := e.Type == event.UsageClosed{}.EventType()
	if isClosing == isClosed || !isClosing && e.Type != (event.UsageAdjusted{}).EventType() {
		return
	}
	var said struct{ Total, Requests int64 }
	if err := json.Unmarshal(e.Data, &said); err != nil {
		w.Report(customers.ClosedStays, "%s@%d: %v", e.Stream, e.Revision, err)
	}
	totals[e.Stream] += said.Total + said.Requests
}
