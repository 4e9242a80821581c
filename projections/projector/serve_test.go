package projector

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// silentConnector makes no connection before the context ends.
type silentConnector struct{ driver.Connector }

func (silentConnector) Connect(ctx context.Context) (driver.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A worker renews its lease and asks whether its generation may serve, one after the other. While the one who asks waits for a database,
// the other must not wait for it: its lease would run out.
func TestOneWhoAsksWhetherAGenerationMayServeDelaysNoOther(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		registry, err := sqldb.OpenRegistry(folder)
		if err != nil {
			t.Fatal(err)
		}
		registry.Simulated.Connector = func(c driver.Connector) driver.Connector { return silentConnector{c} }
		p := New(memory.New(time.Now), eventstore.NewCodec(nil), registry)
		g := sqldb.Generation{Name: "a-g1", Model: "a", State: sqldb.Building}
		w := &worker{model: Model{ReadModel: table.ReadModel{Name: "a"}}, log: slog.New(slog.DiscardHandler)}
		w.state = workerState{caughtUpAt: time.Now(), changed: make(chan struct{})}
		serve := p.serveOnceFunc(w, g)

		asking, stop := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() { asked <- serve(asking) }()
		synctest.Wait()
		begun := time.Now()
		if err := serve(t.Context()); err != nil || time.Since(begun) > 0 {
			t.Errorf("the second one who asked waited %v: %v", time.Since(begun), err)
		}
		stop()
		if err := <-asked; err == nil {
			t.Error("the first one has an answer of a database that is silent")
		}
	})
}
