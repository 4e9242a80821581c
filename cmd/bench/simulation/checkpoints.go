package simulation

import (
	"context"
	"fmt"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// checkpointInterval is how often checkpoints are looked at.
const checkpointInterval = 300 * time.Millisecond

// watchCheckpoints reports a generation of a read model whose checkpoint goes back, until ctx ends: then an instance that has lost its
// lease has written rows. Who only looks at quiet moments sees nothing of that, since rows are written again in the right order.
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
		if now := w.epoch.Load(); now != epoch { // the databases are older ones, or the logs
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

// readPositions returns the positions of the generations that serve now. One that cannot be read is left out.
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
