package projector

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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

// A projector that ends waits for the batch that is being applied. Meanwhile it must hold no lock that an ended handler waits
// for: the bubble's clock would stand still, and the test would not end.
func TestAProjectorThatEndsWaitsForItsBatch(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "readmodels")
	synctest.Test(t, func(t *testing.T) {
		registry, err := sqldb.OpenRegistry(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		const takes = 3 * time.Second
		begun, isApplied := make(chan struct{}), false
		apply := func(*Changeset, event.Event, Record) {
			close(begun)
			time.Sleep(takes)
			isApplied = true
		}
		log := memory.New(time.Now)
		opened := eventstore.ProposedEvent{ID: uuid.New(), Type: event.ReferentialOpened{}.EventType(), Data: []byte(`{"code":"m"}`), Metadata: []byte(`{}`)}
		if _, err := log.Append(t.Context(), "locations-a", eventstore.Any, []eventstore.ProposedEvent{opened}); err != nil {
			t.Fatal(err)
		}
		p := New(log, eventstore.NewCodec(nil), registry, Model{
			ReadModel: table.ReadModel{Name: "noted", Version: 1, Tables: []table.Def{table.Outbox.Def}},
			Handlers:  []EventHandler{OnAnyOther(apply, "locations")}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		<-begun
		stoppedAt := time.Now()
		cancel()
		if err := <-ended; err != nil || !isApplied || time.Since(stoppedAt) > closeTimeout {
			t.Errorf("ended after %v with %v; the batch was applied: %v", time.Since(stoppedAt), err, isApplied)
		}
	})
}

// blockingHandler is a log handler that blocks the creation of the first worker.
type blockingHandler struct {
	slog.Handler
	block func()
}

func (h blockingHandler) WithAttrs([]slog.Attr) slog.Handler {
	h.block()
	return h
}

// A worker may be started while the projector's context ends. Its handler must not be added to a router that is ending.
func TestTheRouterEndsAfterTheLastWorkerWasStarted(t *testing.T) { // not parallel: no other router may run
	folder := filepath.Join(t.TempDir(), "readmodels")
	synctest.Test(t, func(t *testing.T) {
		registry, err := sqldb.OpenRegistry(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		p := New(memory.New(time.Now), eventstore.NewCodec(nil), registry,
			Model{ReadModel: table.ReadModel{Name: "noted", Version: 1, Tables: []table.Def{table.Outbox.Def}}})
		reached, released := make(chan struct{}), make(chan struct{})
		block := sync.OnceFunc(func() {
			close(reached)
			<-released
		})
		p.Log = slog.New(blockingHandler{slog.DiscardHandler, block})
		isRouterRunning := func() bool {
			stacks := make([]byte, 1<<20)
			return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "message.(*Router).Run(")
		}
		if isRouterRunning() {
			t.Fatal("the router of another test is running")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		<-reached
		cancel()
		synctest.Wait()
		if !isRouterRunning() {
			t.Error("the router ended before the worker was started")
		}
		close(released)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
