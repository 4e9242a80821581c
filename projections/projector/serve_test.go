package projector

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// silentConnector makes no connection before the context ends.
type silentConnector struct{ driver.Connector }

func (silentConnector) Connect(ctx context.Context) (driver.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A worker renews its lease and then asks whether its generation may serve. While one caller waits for a database in that
// question, the others must not wait for it: their lease would run out.
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

// fullConnector makes connections to SQLite that call refuse before each transaction, to see whether it cannot begin.
type fullConnector struct {
	driver.Connector
	refuse func() bool
}

var errFull = errors.New("database or disk is full (13)")

func (c fullConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return fullConn{inner.(sqldb.SQLiteConn), c.refuse}, nil
}

type fullConn struct {
	sqldb.SQLiteConn
	refuse func() bool
}

func (c fullConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.refuse() {
		return nil, errFull
	}
	return c.SQLiteConn.BeginTx(ctx, o)
}

// While a disk is full, the first generation of a read model cannot be made. Retries must pause in between.
func TestFullDiskIsTriedAgainAfterAPause(t *testing.T) {
	folder := t.TempDir()
	model := table.ReadModel{Name: "a", Version: 1, Tables: []table.Def{{Name: "a", KeyColumns: 1, Columns: []table.Column{{Name: "id", Type: table.Text}}}}}
	synctest.Test(t, func(t *testing.T) {
		registry, err := sqldb.OpenRegistry(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		const limit = 1000
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		isFull, tries := false, 0
		refuse := func() bool {
			if isFull {
				tries++
			}
			if tries > limit { // otherwise no time passes in the bubble
				stop()
			}
			return isFull
		}
		registry.Simulated.Connector = func(c driver.Connector) driver.Connector { return fullConnector{c, refuse} }
		if _, err := registry.Generations(ctx); err != nil { // makes the registry's own tables
			t.Fatal(err)
		}
		isFull = true
		s := &supervisor{projector: New(memory.New(time.Now), eventstore.NewCodec(nil), registry, Model{ReadModel: model}), running: map[string]*runningWorker{}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.superviseWorkers(ctx)
		}()
		time.Sleep(10 * time.Second)
		stop()
		<-done
		if most := int(10*time.Second/registryPollInterval) + 1; tries == 0 || tries > most {
			t.Errorf("%d tries in 10 s, want at most %d", tries, most)
		}
	})
}

// writeRefusingConn is a connection to a disk that is sometimes full: it reads, but cannot write.
type writeRefusingConn struct {
	sqldb.SQLiteConn
	isFull *atomic.Bool
}

func (c writeRefusingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.isFull.Load() {
		return nil, errFull
	}
	return c.SQLiteConn.BeginTx(ctx, o)
}

func (c writeRefusingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.isFull.Load() {
		return nil, errFull
	}
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

type writeRefusingConnector struct {
	driver.Connector
	isFull *atomic.Bool
}

func (c writeRefusingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return writeRefusingConn{inner.(sqldb.SQLiteConn), c.isFull}, nil
}

// A full disk cannot store a reason in the checkpoint's row either. The instance that cannot write reports it from memory.
func TestAFullDiskIsNamedUntilItHasRoom(t *testing.T) {
	folder := t.TempDir()
	model := table.ReadModel{Name: "a", Version: 1, Tables: []table.Def{{Name: "a", KeyColumns: 1, Columns: []table.Column{{Name: "id", Type: table.Text}}}}}
	synctest.Test(t, func(t *testing.T) {
		registry, err := sqldb.OpenRegistry(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		var isFull atomic.Bool
		registry.Simulated.Connector = func(c driver.Connector) driver.Connector { return writeRefusingConnector{c, &isFull} }
		log := memory.New(time.Now)
		handler := On(func(b *Changeset, e event.UsageAccountClosed, _ Record) {})
		p := New(log, eventstore.NewCodec(nil), registry, Model{ReadModel: model, OmitsMetadata: true, Handlers: []EventHandler{handler}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(5 * time.Second)
		if err := p.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		isFull.Store(true)
		proposed := []eventstore.ProposedEvent{{ID: uuid.New(), Type: event.UsageAccountClosed{}.EventType(), Data: []byte(`{"account":"a"}`), Metadata: []byte("{}")}}
		if _, err := log.Append(ctx, "usage-a-2026-01-01", eventstore.Any, proposed); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			time.Sleep(7 * time.Second)
			if err := p.Ready(ctx); err == nil || !strings.Contains(err.Error(), errFull.Error()) {
				t.Errorf("look %d: ready says %v, want that the disk is full", n, err)
			}
		}
		isFull.Store(false)
		time.Sleep(10 * time.Second)
		if err := p.Ready(ctx); err != nil {
			t.Errorf("with room again: %v", err)
		}
		stop()
		<-done
	})
}
